/* SPDX-License-Identifier: Apache-2.0
 *
 * Draws efficiency over numbers of ranks: logarithmic to the right, 0 to 100 % upwards.
 */
#include <math.h>

#include "scale/scale.h"

enum { WIDTH = 640, HEIGHT = 360, LEFT = 60, RIGHT = 24, TOP = 44, BOTTOM = 48 };

static int x_of(int64_t ranks, int64_t first, int64_t last)
{
    const double all = last > first ? log2((double)last / (double)first) : 1;
    return LEFT + (int)lround((WIDTH - LEFT - RIGHT) * log2((double)ranks / (double)first) / all);
}

static int y_of(double efficiency)
{
    return HEIGHT - BOTTOM - (int)lround((HEIGHT - TOP - BOTTOM) * efficiency);
}

ctn_status write_chart(const char *path, const char *title, int n, const int64_t *ranks,
                       const double *efficiency)
{
    FILE *f = NULL;
    int64_t first = ranks[0], last = ranks[0];
    for (int i = 1; i < n; i++) {
        if (ranks[i] < first) first = ranks[i];
        if (ranks[i] > last) last = ranks[i];
    }
    CTN_TRY(file_open(&f, path));
    fprintf(f,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" "
            "font-family=\"sans-serif\" font-size=\"12\" fill=\"#334155\">\n"
            "<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n"
            "<text x=\"%d\" y=\"24\" font-size=\"14\">%s</text>\n",
            WIDTH, HEIGHT, LEFT, title);
    for (int percent = 0; percent <= 100; percent += 20)
        fprintf(f,
                "<path d=\"M%d %dH%d\" stroke=\"#e2e8f0\"/>"
                "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%d %%</text>\n",
                LEFT, y_of(percent * 0.01), WIDTH - RIGHT, LEFT - 8, y_of(percent * 0.01) + 4,
                percent);
    for (int i = 0; i < n; i++)
        fprintf(f, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">%lld</text>\n",
                x_of(ranks[i], first, last), HEIGHT - BOTTOM + 18, (long long)ranks[i]);
    fprintf(f, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">ranks</text>\n<polyline points=\"",
            WIDTH - RIGHT, HEIGHT - 10);
    for (int i = 0; i < n; i++)
        fprintf(f, "%d,%d ", x_of(ranks[i], first, last), y_of(efficiency[i]));
    fprintf(f, "\" fill=\"none\" stroke=\"#2563eb\" stroke-width=\"2\"/>\n</svg>\n");
    return file_close(f, path);
}
