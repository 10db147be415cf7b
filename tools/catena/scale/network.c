/* SPDX-License-Identifier: Apache-2.0
 *
 * The simulated network by itself: what its links can do, to be compared with the published
 * figures, and which allreduce algorithm is fastest for which length.
 */
#include <stdlib.h>
#include <string.h>

#include "scale/scale.h"

enum { OUTPUT = 1 << 16, LENGTHS = 24 };

static ctn_status measure(const platform *p, int64_t ranks, const char *folder, const char *what,
                          char *text)
{
    return simulate(p, ranks, folder, 1, &what, text, OUTPUT);
}

ctn_status scale_links(const args *a, const platform *p, int n, const int64_t *ranks,
                       const char *folder)
{
    static char text[OUTPUT];
    json j = {0};
    const bool as_json = args_flag(a, "json");
    if (as_json) json_open(&j, NULL, '[');
    else
        say(stdout, "%s (%s)\n%7s %12s %12s %22s\n", p->name, p->source, "ranks", "latency us",
            "GB/s", "GB/s each, bisection");
    for (int i = 0; i < n; i++) {
        CTN_TRY(measure(p, ranks[i], folder, "ping", text));
        const double us = simulated_number(text, "latency_us");
        const double rate = simulated_number(text, "gb_per_s");
        CTN_TRY(measure(p, ranks[i], folder, "bisection", text));
        const double each = simulated_number(text, "gb_per_s_each");
        if (!as_json)
            say(stdout, "%7lld %12.2f %12.2f %22.2f\n", (long long)ranks[i], us, rate, each);
        if (!as_json) continue;
        json_open(&j, NULL, '{');
        json_text(&j, "platform", p->name);
        json_int(&j, "ranks", ranks[i]);
        json_real(&j, "latency_us", us);
        json_real(&j, "gb_per_s", rate);
        json_real(&j, "gb_per_s_each", each);
        json_real(&j, "link_gb_per_s", p->gb_per_s);
        json_close(&j, '}');
    }
    if (as_json) json_close(&j, ']');
    return CTN_OK;
}

static void print_sum(json *j, bool as_json, const char *line)
{
    char name[32], chosen[32];
    const int64_t ranks = (int64_t)simulated_number(line, "ranks");
    const int64_t bytes = (int64_t)simulated_number(line, "bytes");
    const double seconds = simulated_number(line, "seconds");
    simulated_word(line, "algorithm", name, sizeof name);
    simulated_word(line, "chosen", chosen, sizeof chosen);
    if (!as_json) {
        const bool chose = strcmp(name, chosen) != 0;
        say(stdout, "%7lld %12lld  %-13s %12.1f%s%s\n", (long long)ranks, (long long)bytes, name,
            seconds * 1e6, chose ? "  " : "", chose ? chosen : "");
        return;
    }
    json_open(j, NULL, '{');
    json_int(j, "ranks", ranks);
    json_int(j, "bytes", bytes);
    json_text(j, "algorithm", name);
    json_text(j, "chosen", chosen);
    json_real(j, "seconds", seconds);
    json_close(j, '}');
}

ctn_status scale_allreduce(const args *a, const platform *p, int n, const int64_t *ranks,
                           const char *folder)
{
    static char text[OUTPUT];
    char length[LENGTHS][24];
    double bytes[LENGTHS];
    const char *words[LENGTHS + 10] = {"sum",
                                       "--algorithm",
                                       args_text(a, "algorithm"),
                                       "--rows",
                                       args_text(a, "rows"),
                                       "--wire",
                                       args_text(a, "wire"),
                                       "--segment",
                                       args_text(a, "segment")};
    const int lengths = args_list(a, "bytes", LENGTHS, bytes), own = 9;
    const bool as_json = args_flag(a, "json");
    json j = {0};
    for (int i = 0; i < lengths; i++) {
        snprintf(length[i], sizeof length[i], "%.0f", bytes[i]);
        words[own + i] = length[i];
    }
    if (as_json) json_open(&j, NULL, '[');
    else
        say(stdout, "%s (%s)\n%7s %12s  %-13s %12s\n", p->name, p->source, "ranks", "bytes",
            "algorithm", "us");
    for (int i = 0; i < n; i++) {
        CTN_TRY(simulate(p, ranks[i], folder, own + lengths, words, text, sizeof text));
        for (char *at = strstr(text, "{\""), *end; at; at = end ? strstr(end, "{\"") : NULL) {
            end = strchr(at, '}');
            if (end) *end++ = 0;
            print_sum(&j, as_json, at);
        }
    }
    if (as_json) json_close(&j, ']');
    return CTN_OK;
}
