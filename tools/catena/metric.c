/* SPDX-License-Identifier: Apache-2.0
 *
 * The option --metric: a list of values to evaluate besides the loss and the accuracy. They are
 * metrics of all samples together (ctn_report_metric), or names that the loss function reports
 * anyway. "f1" and "val/f1" mean the same. ":min" or ":max" after the first name tells which of
 * its values are better.
 */
#include <stdio.h>
#include <string.h>

#include <catena/ops.h>

#include "task.h"

/* The next name of a comma-separated list, without "val/" and ":min". Returns the rest; NULL: none
 * is left. */
static const char *next_name(const char *list, char *name, size_t size)
{
    if (!list[0]) return NULL;
    if (strncmp(list, "val/", 4) == 0) list += 4;
    const size_t n = strcspn(list, ",");
    snprintf(name, size, "%.*s", (int)strcspn(list, ",:"), list);
    return list + n + (list[n] == ',');
}

void metric_first(const char *list, char *name, size_t size)
{
    if (!next_name(list, name, size)) name[0] = 0;
}

static bool is_metric(const char *name)
{
    for (const char *const *m = ctn_metric_names(); *m; m++)
        if (strcmp(*m, name) == 0) return true;
    return false;
}

static bool is_error(const char *name)
{
    return strcmp(name, "relative_l2") == 0 || strcmp(name, "mae") == 0 ||
           strcmp(name, "rmse") == 0;
}

int metric_larger(const char *list)
{
    char name[128];
    const char *end = list + strcspn(list, ","), *how = end - list > 4 ? end - 4 : "";
    metric_first(list, name, sizeof name);
    if (strncmp(how, ":max", 4) == 0) return 1;
    if (strncmp(how, ":min", 4) == 0 || strstr(name, "loss") || is_error(name)) return 0;
    return is_metric(name) || strstr(name, "accuracy") || strcmp(name, "top5") == 0 ? 1 : -1;
}

static bool of_numbers(const char *name)
{
    return strcmp(name, "r2") == 0 || is_error(name);
}

static bool of_two_classes(const char *name)
{
    return strcmp(name, "f1") == 0 || strcmp(name, "precision") == 0 ||
           strcmp(name, "recall") == 0 || strcmp(name, "auc") == 0;
}

static bool reported_anyway(const task *t, const char *name)
{
    return strncmp(name, "train/", 6) == 0 || strcmp(name, "loss") == 0 ||
           (t->classify && strcmp(name, "accuracy") == 0) ||
           (t->classify && t->classes > 20 && strcmp(name, "top5") == 0);
}

static ctn_status check_one(const task *t, const char *name)
{
    if (reported_anyway(t, name)) return CTN_OK;
    if (!is_metric(name)) {
        char all[512] = "";
        size_t n = 0;
        for (const char *const *m = ctn_metric_names(); *m && n < sizeof all; m++)
            n += (size_t)snprintf(all + n, sizeof all - n, " %s", *m);
        return ctn_fail(CTN_EARG, "--metric: there is no '%s' here; known metrics:%s", name, all);
    }
    if (of_numbers(name) == t->classify)
        return ctn_fail(CTN_EARG, "--metric: %s needs targets that are %s", name,
                        t->classify ? "numbers, not classes" : "classes");
    if (of_two_classes(name) && t->classes != 2)
        return ctn_fail(CTN_EARG, "--metric: %s needs two classes, the data has %lld%s", name,
                        (long long)t->classes,
                        name[0] == 'a' ? "" : "; for more there are _macro and _micro");
    return CTN_OK;
}

/* The user's own loss function may report anything. */
ctn_status metrics_check(const task *t)
{
    char name[128];
    const char *list = args_text(t->a, "metric"), *how = list;
    while ((how = strchr(how, ':'))) {
        const size_t n = strcspn(++how, ",");
        if (n != 3 || (strncmp(how, "min", n) != 0 && strncmp(how, "max", n) != 0))
            return ctn_fail(CTN_EARG, "--metric %s: expected :min or :max after a name", list);
    }
    while (t->loss == task_loss && (list = next_name(list, name, sizeof name)))
        CTN_TRY(check_one(t, name));
    return CTN_OK;
}

/* x (N,...) in the units of the target, as (N,outputs,...). */
static ctn_tensor *in_units(const task *t, ctn_tensor *x)
{
    if (!t->moment[1][0]) return x;
    const int64_t n = ctn_var_desc(t->moment[1][0])->dim[0];
    ctn_tensor *mean = ctn_reshape(ctn_use(t->moment[1][0]), CTN_SHAPE(1, n, 1));
    ctn_tensor *std = ctn_reshape(ctn_use(t->moment[1][1]), CTN_SHAPE(1, n, 1));
    x = ctn_cast(ctn_reshape(x, CTN_SHAPE(ctn_dim(x, 0), n, -1)), CTN_F64);
    return ctn_add(ctn_mul(x, std), mean);
}

void metrics_report(const task *t, ctn_step *s, ctn_tensor *y, ctn_tensor *target)
{
    char name[128];
    const char *list = args_text(t->a, "metric");
    if (ctn_context_training(t->ctx) || !y || !target) return;
    if (!t->classify && list[0]) {
        y = in_units(t, y);
        target = in_units(t, target);
    }
    while ((list = next_name(list, name, sizeof name)))
        if (is_metric(name)) ctn_report_metric(s, name, NULL, y, target);
}
