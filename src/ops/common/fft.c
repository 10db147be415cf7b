/* SPDX-License-Identifier: Apache-2.0
 *
 * Fourier transforms along one axis: Stockham's algorithm with radices 4, 2, 3, 5 and other small
 * primes, and Bluestein's for lengths with a large prime factor. This is our own because FFTW's
 * licence (GPL) would bind the binary packages, and others are not packaged.
 *
 * Many lines are transformed at once. A block of up to 64 bytes of lines is copied to scratch as
 * [position][line], real and imaginary parts apart, so every loop runs over lines, or over lines
 * and positions, without dependences, and results depend neither on the instruction set nor on
 * how lines are grouped. The blocks are shared among threads. The inverse transform is the forward
 * one with real and imaginary parts swapped.
 *
 * A real line of even length n is transformed as n/2 complex numbers, one of odd length as a
 * complex line. Roots of unity are computed in double, once per plan.
 */
#include "ops/common/fft.h"

#include <math.h>
#include <omp.h>

enum {
    MAX_PASSES = 64,
    LARGEST_RADIX = 31, /* of a pass; a larger prime factor needs Bluestein */
    FEW = 16,           /* elements of a line that are copied before the next line */
    VECTOR = 64,        /* bytes of the lines of a block, at one position */
    BLOCK = 512 << 10   /* bytes of the work space of a block, if more than one line fits */
};

typedef struct ctn__fft ctn__fft;
struct ctn__fft {
    int64_t n;    /* complex elements */
    int64_t room; /* elements of a line that the work needs */
    int npass;
    int radix[MAX_PASSES];
    void *w;     /* twiddle factors of all passes */
    void *roots; /* roots of unity of the radices above 5 */
    /* Bluestein only: */
    ctn__fft *longer; /* the transform of the convolution */
    void *chirp, *spectrum;
    int64_t given, wanted; /* the first elements of a line that are not 0, and that are read */
};

typedef enum { COMPLEX, TO_HALF, FROM_HALF } kind; /* fft, rfft, irfft */

/* A prepared node. */
typedef struct {
    kind what;
    bool inverse;
    int64_t n;            /* length of the transform */
    int64_t inner, lines; /* elements between two of a line; number of lines */
    int64_t rows[2];      /* length of the axis in the input and in the output */
    int64_t lanes;        /* lines of a block */
    int64_t room;         /* rows of a block: half a spectrum has one more than its pairs */
    double edge, middle;  /* factors of the frequencies 0 and n/2, and of the others */
    ctn__fft *fft;        /* of length n, or n/2 for real lines of even length */
    void *half;           /* exp(-2 pi i k / n), k = 0 to n/2, for those */
} job;

/* Lines begin at these places and are neighbours in memory. */
static bool beside(const int64_t *at, int64_t L)
{
    for (int64_t l = 1; l < L; l++)
        if (at[l] != at[0] + l) return false;
    return true;
}

/* Where L lines begin in the input (side 0) or the output (1), in elements or pairs. */
static void places(const job *b, int side, int64_t first, int64_t L, int64_t *at)
{
    const int64_t skip = (b->rows[side] - 1) * b->inner;
    int64_t column = first % b->inner, o = first / b->inner * b->rows[side] * b->inner + column;
    for (int64_t l = 0; l < L; l++, o++, column++) {
        if (column == b->inner) {
            column = 0;
            o += skip;
        }
        at[l] = o;
    }
}

#define T float
#define NAME(x) x##_f32
#include "ops/common/fft_body.h"
#undef T
#undef NAME
#define T double
#define NAME(x) x##_f64
#include "ops/common/fft_body.h"
#undef T
#undef NAME

/* ---- the tables of a length ------------------------------------------------------------------ */

void ctn__fft_root(int64_t k, int64_t n, double *c, double *s)
{
    const double half_pi = 1.57079632679489661923;
    k %= n;
    const int64_t quarter = 4 * k / n, rest = 4 * k - quarter * n; /* angle: rest / n quarters */
    const bool low = 2 * rest <= n;
    const double a = half_pi * (double)(low ? rest : n - rest) / (double)n;
    const double x = low ? cos(a) : sin(a), y = low ? sin(a) : cos(a);
    switch (quarter) {
    case 0: *c = x, *s = y; break;
    case 1: *c = -y, *s = x; break;
    case 2: *c = -x, *s = -y; break;
    default: *c = y, *s = -x;
    }
}

/* Element i of w = exp(-2 pi i k / n). */
static void put_root(void *w, ctn_dtype t, int64_t i, int64_t k, int64_t n)
{
    double c, s;
    ctn__fft_root(k, n, &c, &s);
    ctn__elem_set(w, t, 2 * i, c);
    ctn__elem_set(w, t, 2 * i + 1, -s);
}

static void *pairs(int64_t n, ctn_dtype t)
{
    return ctn__malloc((size_t)(n > 0 ? 2 * n : 1) * ctn_dtype_size(t));
}

static void fft_free(ctn__fft *f)
{
    if (!f) return;
    fft_free(f->longer);
    ctn__free(f->w);
    ctn__free(f->roots);
    ctn__free(f->chirp);
    ctn__free(f->spectrum);
    ctn__free(f);
}

/* Fill in the radices of n; false if it has a large prime factor. */
static bool factorize(ctn__fft *f, int64_t n)
{
    static const int first[] = {4, 2, 3, 5};
    f->npass = 0;
    for (int i = 0; i < 4; i++)
        for (; n % first[i] == 0; n /= first[i]) f->radix[f->npass++] = first[i];
    for (int r = 7; r <= LARGEST_RADIX; r += 2)
        for (; n % r == 0; n /= r) f->radix[f->npass++] = r;
    return n == 1;
}

static ctn_status make_passes(ctn__fft *f, ctn_dtype t)
{
    int64_t nw = 0, nroots = 0, m = f->n;
    for (int i = 0; i < f->npass; i++) {
        m /= f->radix[i];
        nw += m * (f->radix[i] - 1);
        nroots += f->radix[i] > 5 ? f->radix[i] : 0;
    }
    f->w = pairs(nw, t);
    f->roots = pairs(nroots, t);
    if (!f->w || !f->roots) return CTN_ENOMEM;
    nw = nroots = 0;
    m = f->n;
    for (int i = 0; i < f->npass; i++) {
        const int64_t r = f->radix[i], n = m;
        m /= r;
        for (int64_t p = 0; p < m; p++)
            for (int64_t k = 1; k < r; k++) put_root(f->w, t, nw++, k * p, n);
        for (int64_t k = 0; k < r && r > 5; k++) put_root(f->roots, t, nroots++, k, r);
    }
    return CTN_OK;
}

static ctn_status fft_new(ctn__fft **f, int64_t n, int64_t given, int64_t wanted, ctn_dtype t);

/* spectrum = the transform of the conjugate chirp, wrapped around, divided by the length. It is
 * computed in double. */
static ctn_status make_spectrum(ctn__fft *f, ctn_dtype t)
{
    ctn_status st = CTN_OK;
    ctn__fft *g = NULL;
    const int64_t n = f->n, m = f->longer->n;
    const int64_t most = f->given > f->wanted ? f->given : f->wanted;
    double *room = ctn__calloc((size_t)(4 * m), sizeof *room);
    if (!room) return CTN_ENOMEM;
    block_f64 x = {room, room + m}, y = {room + 2 * m, room + 3 * m};
    CTN_TRY_GOTO(st, done, fft_new(&g, m, m, m, CTN_F64));
    for (int64_t j = 0; j < most; j++) {
        double c, s;
        ctn__fft_root(j * j % (2 * n), 2 * n, &c, &s);
        if (j < f->wanted) x.re[j] = c, x.im[j] = s;
        if (j > 0 && j < f->given) x.re[m - j] = c, x.im[m - j] = s;
    }
    passes_f64(g, &x, &y, 1);
    for (int64_t j = 0; j < m; j++) {
        ctn__elem_set(f->spectrum, t, 2 * j, x.re[j] / (double)m);
        ctn__elem_set(f->spectrum, t, 2 * j + 1, x.im[j] / (double)m);
    }
done:
    fft_free(g);
    ctn__free(room);
    return st;
}

static ctn_status make_bluestein(ctn__fft *f, ctn_dtype t)
{
    ctn__fft five = {0};
    int64_t m = f->given + f->wanted - 1; /* differences of their positions */
    while (!factorize(&five, m) || five.radix[five.npass - 1] > 5) m++;
    CTN_TRY(fft_new(&f->longer, m, m, m, t));
    f->room = m;
    f->chirp = pairs(f->n, t);
    f->spectrum = pairs(m, t);
    if (!f->chirp || !f->spectrum) return CTN_ENOMEM;
    for (int64_t j = 0; j < f->n; j++) put_root(f->chirp, t, j, j * j % (2 * f->n), 2 * f->n);
    return make_spectrum(f, t);
}

static ctn_status fft_new(ctn__fft **f, int64_t n, int64_t given, int64_t wanted, ctn_dtype t)
{
    *f = ctn__calloc(1, sizeof **f);
    if (!*f) return CTN_ENOMEM;
    (*f)->n = (*f)->room = n;
    (*f)->given = given;
    (*f)->wanted = wanted;
    ctn_status st = factorize(*f, n) ? make_passes(*f, t) : make_bluestein(*f, t);
    if (st < 0) {
        fft_free(*f);
        *f = NULL;
    }
    return st;
}

/* ---- a prepared node ------------------------------------------------------------------------- */

static void job_free(void *priv)
{
    job *b = priv;
    if (!b) return;
    fft_free(b->fft);
    ctn__free(b->half);
    ctn__free(b);
}

static ctn_status make_half(job *b, ctn_dtype t)
{
    b->half = pairs(b->n / 2 + 1, t);
    if (!b->half) return CTN_ENOMEM;
    for (int64_t k = 0; k <= b->n / 2; k++) put_root(b->half, t, k, k, b->n);
    return CTN_OK;
}

static ctn_status fft_run(const ctn_run_args *a)
{
    const job *b = a->priv;
    const int64_t blocks = (b->lines + b->lanes - 1) / b->lanes, room = 4 * b->room * b->lanes;
    const bool small = b->lines * b->n <= CTN__GRAIN;
#pragma omp parallel for schedule(static) if (!small)
    for (int64_t i = 0; i < blocks; i++) {
        const int64_t first = i * b->lanes, left = b->lines - first;
        const int64_t L = left < b->lanes ? left : b->lanes, mine = omp_get_thread_num() * room;
        if (a->dout[0].dtype == CTN_F32)
            run_block_f32(b, a->in[0], a->out[0], first, L, (float *)a->scratch + mine);
        else run_block_f64(b, a->in[0], a->out[0], first, L, (double *)a->scratch + mine);
    }
    return CTN_OK;
}

/* Called only if there are no elements. */
static ctn_status run_nothing(const ctn_run_args *a)
{
    (void)a;
    return CTN_OK;
}

/* As many lines as a vector has elements, or fewer if the block would not fit into the cache. */
static int64_t lanes_of(const job *b, size_t es)
{
    int64_t lanes = VECTOR / (int64_t)es;
    while (lanes > 1 && 4 * b->fft->room * lanes * (int64_t)es > BLOCK) lanes /= 2;
    return lanes;
}

static ctn_status fill_job(job *b, ctn_prepare_args *a, kind what)
{
    const ctn_dtype t = a->dout[0].dtype;
    const int axis = (int)a->attr[CTN__FFT_AXIS];
    const ctn_desc *real = what == FROM_HALF ? &a->dout[0] : &a->din[0];
    const int64_t pair = what == COMPLEX ? 2 : 1;
    const ctn__along s = ctn__along_axis(real, axis);
    const double n = (double)s.n;
    b->what = what;
    b->n = s.n;
    b->inner = s.inner / pair;
    b->lines = s.outer * b->inner;
    b->rows[0] = a->din[0].dim[axis];
    b->rows[1] = a->dout[0].dim[axis];
    b->inverse = what == FROM_HALF || (what == COMPLEX && a->attr[CTN__FFT_INVERSE]);
    b->edge = a->attr[CTN__FFT_FACTOR] == CTN__FFT_NTH    ? 1 / n
              : a->attr[CTN__FFT_FACTOR] == CTN__FFT_ROOT ? 1 / sqrt(n)
                                                          : 1;
    b->middle = b->edge;
    if (what == TO_HALF && a->attr[CTN__FFT_WEIGHTED]) b->middle *= 2;
    if (what == FROM_HALF && !a->attr[CTN__FFT_WEIGHTED]) b->middle /= 2;
    const bool even = what != COMPLEX && b->n % 2 == 0;
    if (even) CTN_TRY(fft_new(&b->fft, b->n / 2, b->n / 2, b->n / 2, t));
    else CTN_TRY(fft_new(&b->fft, b->n, b->rows[0], b->rows[1], t));
    if (even) CTN_TRY(make_half(b, t));
    b->room = b->fft->room + 1;
    b->lanes = lanes_of(b, ctn_dtype_size(t));
    return CTN_OK;
}

static ctn_status prepare(ctn_prepare_args *a, kind what)
{
    const size_t es = ctn_dtype_size(a->dout[0].dtype);
    a->kernel = "empty";
    a->run = run_nothing;
    if (ctn__count(&a->dout[0]) == 0) return CTN_OK;
    job *b = ctn__calloc(1, sizeof *b);
    ctn_status st = b ? fill_job(b, a, what) : CTN_ENOMEM;
    if (st < 0) {
        job_free(b);
        return st;
    }
    const bool bluestein = b->fft->longer != NULL;
    a->kernel = bluestein ? "own:bluestein" : "own:stockham";
    a->run = fft_run;
    a->priv = b;
    a->priv_free = job_free;
    a->priv_bytes = (size_t)(4 * b->n + (bluestein ? 6 * b->fft->room : 0)) * es;
    a->scratch = (size_t)(4 * b->room * b->lanes * a->threads) * es;
    a->flops = (int64_t)(5 * (double)(b->lines * b->n) * log2((double)b->n + 1));
    return CTN_OK;
}

ctn_status ctn__fft_prepare(ctn_prepare_args *a)
{
    return prepare(a, COMPLEX);
}

ctn_status ctn__rfft_prepare(ctn_prepare_args *a)
{
    return prepare(a, TO_HALF);
}

ctn_status ctn__irfft_prepare(ctn_prepare_args *a)
{
    return prepare(a, FROM_HALF);
}

/* ---- checks and axes ------------------------------------------------------------------------- */

const char *const ctn__fft_attr_names[] = {"axis", "factor", "inverse"};
const char *const ctn__rfft_attr_names[] = {"axis", "factor", "weighted", "length"};

int64_t ctn__fft_factor(ctn_fft_norm norm, bool inverse)
{
    if (norm == CTN_FFT_ORTHO) return CTN__FFT_ROOT;
    return (norm == CTN_FFT_FORWARD) != inverse ? CTN__FFT_NTH : CTN__FFT_ONE;
}

bool ctn__fft_axes(const char *name, const char *at, const ctn_tensor *x, int pair, int naxes,
                   const int64_t *axes, ctn_fft_norm norm, int64_t *out)
{
    char t[128];
    if (!x) return false;
    const int nd = x->d.ndim - pair;
    if (naxes < 1 || naxes > nd || !axes) {
        ctn_fail(CTN_EARG, "%s: got %d axes for x %s, expected 1 to %d (%s)", name, naxes,
                 ctn__shape_text(&x->d, t, sizeof t), nd, at);
        return false;
    }
    if (norm < CTN_FFT_BACKWARD || norm > CTN_FFT_FORWARD) {
        ctn_fail(CTN_EARG, "%s: norm is %d, expected a ctn_fft_norm (%s)", name, (int)norm, at);
        return false;
    }
    for (int i = 0; i < naxes; i++) {
        out[i] = axes[i] < 0 ? axes[i] + nd : axes[i];
        bool ok = out[i] >= 0 && out[i] < nd;
        for (int k = 0; k < i; k++) ok &= out[k] != out[i];
        if (ok) continue;
        ctn_fail(CTN_ESHAPE, "%s: axis %lld is given twice or is not one of the %d of x %s (%s)",
                 name, (long long)axes[i], nd, ctn__shape_text(&x->d, t, sizeof t), at);
        return false;
    }
    return true;
}

ctn_status ctn__fft_infer_complex(const ctn_infer_args *a)
{
    const ctn_desc *x = a->in[0];
    char t[128];
    CTN_TRY(ctn__infer_arith(a, x));
    if (x->ndim < 2 || x->dim[x->ndim - 1] != 2)
        return ctn_fail(CTN_ESHAPE, "%s: x is %s, expected complex numbers (...,2)", a->name,
                        ctn__shape_text(x, t, sizeof t));
    if (x->dim[a->attr[CTN__FFT_AXIS]] == 0)
        return ctn_fail(CTN_ESHAPE, "%s: x %s has length 0 along axis %d", a->name,
                        ctn__shape_text(x, t, sizeof t), (int)a->attr[CTN__FFT_AXIS]);
    return CTN_OK;
}
