/* SPDX-License-Identifier: Apache-2.0
 *
 * The decision table (rule 10): which of several kernels to use for a problem. It is read from the
 * tuning store on first use, extended by ops/common/choose.c while timing is allowed, and written
 * back when a plan is complete. A machine is identified by its CPU, the instruction sets in use,
 * the versions and the number of threads.
 */
#include <ctype.h>

#include "engine/onednn.h"

static void read_cpu(char *out, size_t n)
{
    char line[256];
    FILE *f = fopen("/proc/cpuinfo", "r");
    snprintf(out, n, "unknown CPU");
    while (f && fgets(line, sizeof line, f)) {
        char *value = strchr(line, ':');
        if (strncmp(line, "model name", 10) != 0 || !value) continue;
        for (value++; isspace((unsigned char)*value); value++) continue;
        value[strcspn(value, "\n")] = 0;
        snprintf(out, n, "%s", value);
        break;
    }
    if (f) fclose(f);
}

static ctn_status open_table(ctn__engine *e)
{
    char cpu[160], machine[320];
    if (e->table) return CTN_OK;
    read_cpu(cpu, sizeof cpu);
    snprintf(machine, sizeof machine, "%s; %s; oneDNN %s; Catena %s; %d threads", cpu,
             ctn__engine_isa(), ctn__engine_version(), ctn_version_text(), e->threads);
    return ctn__store_open(&e->table, machine, NULL);
}

const char *ctn__choice_find(ctn__engine *e, const char *problem)
{
    return open_table(e) < 0 ? NULL : ctn__store_find(e->table, problem);
}

ctn_status ctn__choice_put(ctn__engine *e, const char *problem, const char *choice)
{
    CTN_TRY(open_table(e));
    e->table_changed = true;
    return ctn__store_put(e->table, problem, choice);
}

/* Tells the user where the results are. */
static void tell_end(const ctn__engine *e)
{
    ctn__text folder = {0};
    ctn__cache_folder(&folder);
    if (!folder.failed && folder.n > 0)
        ctn__notice("timed kernels for %.1f s; results saved in %s", (double)e->timed_ns * 1e-9,
                    folder.s);
    ctn__text_free(&folder);
}

void ctn__engine_timed(ctn__engine *e, uint64_t ns)
{
    e->timed_ns += ns;
    if (e->timing_told || e->timed_ns < 1000000000) return;
    e->timing_told = true;
    ctn__text folder = {0};
    ctn__cache_folder(&folder);
    const bool kept = !folder.failed && folder.n > 0;
    ctn__notice("timing kernels once, about 20 s%s%s; CATENA_TUNE=0 turns it off",
                kept ? ", kept in " : "", kept ? folder.s : "");
    ctn__text_free(&folder);
}

ctn_status ctn__choices_save(ctn__engine *e)
{
    if (!e->table_changed) return CTN_OK;
    e->table_changed = false;
    CTN_TRY(ctn__store_save(e->table));
    const char *why = ctn__store_problem(e->table);
    if (why && !e->table_told) ctn__warn("%s", why);
    else if (e->timing_told && !e->table_told) tell_end(e);
    e->table_told |= why != NULL;
    return CTN_OK;
}

ctn_status ctn__choices_text(ctn__engine *e, ctn__text *out)
{
    CTN_TRY(open_table(e));
    ctn__store_text(e->table, out);
    return out->failed ? CTN_ENOMEM : CTN_OK;
}

ctn_status ctn__choices_replace(ctn__engine *e, const char *text, size_t n)
{
    CTN_TRY(open_table(e));
    return ctn__store_replace(e->table, text, n);
}

void ctn__engine_set_timing(ctn__engine *e, bool on)
{
    e->timing = on;
}

bool ctn__engine_timing(const ctn__engine *e)
{
    return e->timing;
}
