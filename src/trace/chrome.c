/* SPDX-License-Identifier: Apache-2.0
 *
 * The Chrome trace writer: complete events ("ph":"X", microseconds) and the counters as otherData.
 *
 * Plain stdio is enough, because the format is a list of flat records. Times are printed as
 * integers, because %f follows the host's locale and a decimal comma is not valid JSON.
 */
#include "trace/trace.h"

#include <errno.h>
#include <inttypes.h>

static void write_string(FILE *f, const char *s)
{
    fputc('"', f);
    for (; *s != 0; s++) {
        unsigned char c = (unsigned char)*s;
        if (c == '"' || c == '\\') fprintf(f, "\\%c", c);
        else if (c < 0x20) fprintf(f, "\\u%04x", c);
        else fputc(c, f);
    }
    fputc('"', f);
}

static void write_us(FILE *f, const char *key, uint64_t ns)
{
    fprintf(f, ",\"%s\":%" PRIu64 ".%03u", key, ns / 1000, (unsigned)(ns % 1000));
}

static void write_spans(ctn__trace *t, FILE *f)
{
    ctn__span s;
    uint64_t start = UINT64_MAX; /* so that the timeline starts at 0 */
    for (int64_t i = 0; ctn__trace_get(t, i, &s); i++)
        if (s.t0 < start) start = s.t0;
    /* Spans recorded meanwhile push old ones out. The count is fixed, so that the loop ends. */
    int64_t n = ctn__trace_spans(t);
    for (int64_t i = 0; i < n && ctn__trace_get(t, i, &s); i++) {
        fputs(i > 0 ? ",\n{\"name\":" : "\n{\"name\":", f);
        write_string(f, s.name != NULL ? s.name : "?");
        write_us(f, "ts", s.t0 > start ? s.t0 - start : 0);
        write_us(f, "dur", s.t1 > s.t0 ? s.t1 - s.t0 : 0);
        if (s.bytes > 0) fprintf(f, ",\"args\":{\"bytes\":%" PRId64 "}", s.bytes);
        fprintf(f, ",\"ph\":\"X\",\"pid\":0,\"tid\":%d}", s.lane);
    }
}

ctn_status ctn__trace_write_chrome(ctn__trace *t, const char *path)
{
    FILE *f = fopen(path, "w");
    if (f == NULL) return ctn_fail(CTN_EIO, "trace: cannot open %s: %s", path, strerror(errno));
    fputs("{\"traceEvents\":[", f);
    write_spans(t, f);
    fprintf(f, "],\n\"displayTimeUnit\":\"ms\",\n\"otherData\":{\"lost_spans\":%" PRId64,
            ctn__trace_lost(t));
    for (int i = 0; i < CTN__COUNT_N; i++)
        fprintf(f, ",\n\"%s\":%" PRIu64, ctn__counter_name((ctn__counter)i),
                ctn__trace_count(t, (ctn__counter)i));
    fputs("}}\n", f);
    bool bad = ferror(f) != 0;
    errno = 0;
    if (fclose(f) != 0) bad = true;
    if (bad)
        return ctn_fail(CTN_EIO, "trace: cannot write %s: %s", path,
                        errno != 0 ? strerror(errno) : "write error");
    return CTN_OK;
}
