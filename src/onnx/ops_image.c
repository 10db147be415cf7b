/* SPDX-License-Identifier: Apache-2.0
 *
 * Images: sampling at the points of a grid, and the choice of boxes in detectors.
 */
#include "onnx/onnx.h"

#ifdef CTN_HAVE_PROTOBUFC

#include <math.h>

#include "onnx/kinds.h"

/* ---- grids ----------------------------------------------------------------------------------- */

/* One coordinate of the grid, moved to the centre of the nearest pixel or to the nearest point
 * inside the image, so that bilinear interpolation gives what the mode asks for. */
static ctn_tensor *coordinate(const char *at, ctn_tensor *g, int64_t n, bool corners, bool nearest,
                              bool border)
{
    const double size = (double)n;
    if (corners && n < 2) return g;
    /* pixel = (g + 1) (n - 1) / 2, or ((g + 1) n - 1) / 2 */
    const double a = (corners ? size - 1 : size) / 2, b = (size - 1) / 2;
    ctn_tensor *p = ctn_shift_at(at, ctn_scale_at(at, g, a), b);
    if (border) p = ctn_clip_at(at, p, 0, size - 1);
    if (nearest) p = ctn_round_at(at, p);
    return ctn_scale_at(at, ctn_shift_at(at, p, -b), 1 / a);
}

ctn_status ctn__onnx_do_grid_sample(ctn__onnx_call *c)
{
    const char *at = c->at;
    ctn_tensor *x = ctn__onnx_in(c, 0), *grid = ctn__onnx_in(c, 1);
    if (!x || !grid) return ctn_error_status();
    const bool nearest = ctn__onnx_text_is(c, "mode", "nearest", false);
    const bool linear = ctn__onnx_text_is(c, "mode", "bilinear", false) ||
                        ctn__onnx_text_is(c, "mode", "linear", true);
    const bool border = ctn__onnx_text_is(c, "padding_mode", "border", false);
    const bool corners = ctn__onnx_int(c, "align_corners", 0);
    if (x->d.ndim != 4 || !(nearest || linear) ||
        ctn__onnx_text_is(c, "padding_mode", "reflection", false))
        return ctn__onnx_fail(c, CTN_EUNSUPPORTED,
                              "expected 4 dimensions, linear or nearest, zeros or border");
    if (nearest || border) {
        ctn_tensor *part[2];
        for (int i = 0; i < 2; i++)
            part[i] = coordinate(at, ctn_select_at(at, grid, 3, i), x->d.dim[3 - i], corners,
                                 nearest, border);
        grid = ctn_stack_at(at, 2, part, 3);
    }
    return ctn__onnx_set(c, 0, ctn_grid_sample_at(at, x, grid, corners));
}

ctn_status ctn__onnx_do_affine_grid(ctn__onnx_call *c)
{
    int64_t size[CTN_MAX_DIMS];
    int n;
    CTN_TRY(ctn__onnx_list(c, NULL, 1, size, CTN_MAX_DIMS, &n));
    if (n != 4) return ctn__onnx_fail(c, CTN_EUNSUPPORTED, "expected the size of 2-D images");
    return ctn__onnx_set(c, 0,
                         ctn_affine_grid_at(c->at, ctn__onnx_in(c, 0), size[2], size[3],
                                            ctn__onnx_int(c, "align_corners", 0) != 0));
}

/* ---- boxes ----------------------------------------------------------------------------------- */

typedef struct {
    double low[2], high[2];
} box;

static box box_of(const ctn__onnx_value *v, int64_t at, bool centre)
{
    double x[4];
    box b;
    for (int i = 0; i < 4; i++) x[i] = ctn__onnx_number_of(v, 4 * at + i);
    for (int i = 0; i < 2; i++) {
        const double p = centre ? x[i] - x[2 + i] / 2 : x[i];
        const double q = centre ? x[i] + x[2 + i] / 2 : x[2 + i];
        b.low[i] = p < q ? p : q;
        b.high[i] = p < q ? q : p;
    }
    return b;
}

static double overlap(const box *a, const box *b)
{
    double both = 1, one = 1, two = 1;
    for (int i = 0; i < 2; i++) {
        const double low = a->low[i] > b->low[i] ? a->low[i] : b->low[i];
        const double high = a->high[i] < b->high[i] ? a->high[i] : b->high[i];
        both *= high > low ? high - low : 0;
        one *= a->high[i] - a->low[i];
        two *= b->high[i] - b->low[i];
    }
    return both > 0 ? both / (one + two - both) : 0;
}

/* The next box by score that has not been looked at; -1: none above the limit. */
static int64_t next_box(const ctn__onnx_value *scores, int64_t row, int64_t n, double limit,
                        const uint8_t *seen)
{
    int64_t best = -1;
    double most = limit;
    for (int64_t i = 0; i < n; i++) {
        const double s = ctn__onnx_number_of(scores, row * n + i);
        if (!seen[i] && s > most) {
            best = i;
            most = s;
        }
    }
    return best;
}

/* Boxes (B,n,4), scores (B,C,n) -> (selected,3): batch, class, box. */
ctn_status ctn__onnx_do_non_max_suppression(ctn__onnx_call *c)
{
    double most = 0, same = 0, limit = -INFINITY;
    for (int i = 0; i < 2; i++) CTN_TRY(ctn__onnx_need(c, i));
    CTN_TRY(ctn__onnx_one_number(c, 2, &most));
    CTN_TRY(ctn__onnx_one_number(c, 3, &same));
    CTN_TRY(ctn__onnx_one_number(c, 4, &limit));
    const ctn__onnx_value *boxes = c->in[0], *scores = c->in[1];
    if (boxes->ndim != 3 || scores->ndim != 3 || boxes->dim[2] != 4 ||
        boxes->dim[0] != scores->dim[0] || boxes->dim[1] != scores->dim[2])
        return ctn__onnx_fail(c, CTN_ESHAPE, "boxes and scores do not fit");
    const bool centre = ctn__onnx_int(c, "center_point_box", 0);
    const int64_t n = boxes->dim[1], rows = ctn__onnx_times(scores->dim[0], scores->dim[1]);
    const int64_t room = most < 0 ? 0 : most < (double)n ? (int64_t)most : n;
    int64_t *out = ctn__onnx_memory(c->run, ctn__onnx_times(rows, room), 3 * sizeof *out);
    uint8_t *seen = ctn__onnx_memory(c->run, n, 1);
    int64_t found = 0, work = 0;
    if (!out || !seen) return ctn_error_status();
    for (int64_t row = 0; row < rows && n > 0; row++) {
        const int64_t first = found, batch = row / scores->dim[1];
        memset(seen, 0, (size_t)n);
        for (int64_t k; found - first < room && (k = next_box(scores, row, n, limit, seen)) >= 0;) {
            const box b = box_of(boxes, batch * n + k, centre);
            bool keep = true;
            seen[k] = 1;
            work += n + found - first;
            if (work > 4096) {
                CTN_TRY(ctn__onnx_spend_elements(c->run, work / 4, 0)); /* fast ones */
                work = 0;
            }
            for (int64_t i = first; i < found && keep; i++) {
                const box other = box_of(boxes, batch * n + out[3 * i + 2], centre);
                keep = overlap(&b, &other) <= same;
            }
            if (!keep) continue;
            out[3 * found] = batch;
            out[3 * found + 1] = row % scores->dim[1];
            out[3 * found++ + 2] = k;
        }
    }
    int64_t *y = ctn__onnx_set_host(c, 0, CTN_I64, CTN_SHAPE(found, 3));
    if (!y) return ctn_error_status();
    memcpy(y, out, (size_t)(3 * found) * sizeof *y);
    return CTN_OK;
}

#endif
