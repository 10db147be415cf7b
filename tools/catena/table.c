/* SPDX-License-Identifier: Apache-2.0
 *
 * A CSV table as the data of a task. --target names the columns to predict, --inputs the others
 * that are used. The inputs are written to config.yaml, so that eval and predict choose the same.
 */
#include <stdlib.h>
#include <string.h>

#include "task.h"

/* Names that were separated by commas. */
typedef struct {
    char *text;
    const char **name;
    int n;
} name_list;

static void list_free(name_list *l)
{
    free(l->text);
    free(l->name);
    *l = (name_list){0};
}

static ctn_status list_split(name_list *l, const char *text)
{
    l->text = strdup(text);
    l->name = calloc(strlen(text) + 1, sizeof *l->name);
    if (!l->text || !l->name) return ctn_fail(CTN_ENOMEM, "no memory for the names of columns");
    for (char *p = l->text; *p;) {
        l->name[l->n++] = p;
        p += strcspn(p, ",");
        if (*p) *p++ = 0;
    }
    return CTN_OK;
}

/* Names with a comma, or of several columns, could not be read back: such a table has numbers in
 * config.yaml. */
static ctn_status settle_inputs(task *t, const ctn_dataset *ds)
{
    char *text = NULL;
    size_t n = 0;
    bool plain = true;
    const char *name;
    for (int64_t k = 0; (name = ctn_csv_column(ds, 0, k)); k++) {
        plain = plain && !strchr(name, ',');
        for (int64_t j = 0; j < k; j++)
            plain = plain && strcmp(name, ctn_csv_column(ds, 0, j)) != 0;
    }
    if (!plain && !args_text(t->a, "inputs")[0])
        return ctn_fail(CTN_EARG, "a column has a comma in its name, or two have the same name: "
                                  "choose the columns by number with --inputs, as in --inputs "
                                  "0,1,3");
    FILE *f = plain ? open_memstream(&text, &n) : NULL;
    for (int64_t k = 0; f && (name = ctn_csv_column(ds, 0, k)); k++)
        fprintf(f, "%s%s", k ? "," : "", name);
    if (f && fclose(f) == 0) args_settle(t->a, "inputs", "%s", text);
    free(text);
    return CTN_OK;
}

/* One more than the largest class, for classes that are numbers. */
static ctn_status count_classes(task *t, ctn_dataset *ds)
{
    int64_t label = 0, most = 0;
    ctn_status st = CTN_OK;
    double *x = malloc((size_t)field_elements(ctn_dataset_field(ds, 0)) * sizeof *x);
    if (!x) return ctn_fail(CTN_ENOMEM, "no memory for a row of the table");
    for (int64_t i = 0; st == CTN_OK && i < ctn_dataset_count(ds); i++) {
        st = ctn_dataset_get(ds, i, (void *[]){x, &label});
        if (label > most) most = label;
    }
    t->classes = most + 1;
    free(x);
    return st;
}

static ctn_status open_columns(task *t, ctn_dataset **ds, const char *path, const name_list *inputs,
                               const name_list *targets)
{
    const bool plain = args_is(t->a, "standardize", "none");
    const char *separator = args_text(t->a, "separator");
    class_names known = {0};
    if (t->use == FOR_EVALUATION)
        CTN_TRY(class_names_read(&known, t->a->job, args_text(t->a, "weights")));
    const bool named = known.n > 0; /* then classes are texts, also those that look like numbers */
    class_names_free(&known);
    if (strcmp(separator, "tab") == 0) separator = "\t";
    const ctn_csv_opt o = {.struct_size = sizeof o,
                           .separator = separator[0] ? separator : NULL,
                           .no_header = args_flag(t->a, "no-header"),
                           .ninputs = inputs->n,
                           .inputs = inputs->name,
                           .ntargets = targets->n,
                           .targets = targets->name,
                           .keep_f64 = !plain,
                           .text_target = named && targets->n == 1,
                           .classes =
                               !named && targets->n == 1 && args_is(t->a, "loss", "cross-entropy"),
                           .fill = args_text(t->a, "fill")[0] != 0,
                           .fill_value = args_real(t->a, "fill"),
                           .like = t->set[0]};
    CTN_TRY(ctn_csv_open(ds, path, &o));
    const ctn_field *y = ctn_dataset_field(*ds, 1);
    t->classify = y ? y->dtype == CTN_I64 : args_is(t->a, "loss", "cross-entropy");
    t->standardize[0] = !plain;
    t->standardize[1] = !plain && !t->classify;
    if (t->use != FOR_TRAINING || o.like) return CTN_OK;
    if (t->classify && t->classes == 0 && ctn_dataset_classes(*ds) == 0)
        CTN_TRY(count_classes(t, *ds));
    return settle_inputs(t, *ds);
}

ctn_status table_open(task *t, ctn_dataset **ds, const char *path, const char *target)
{
    name_list inputs = {0}, targets = {0};
    ctn_status st = CTN_OK;
    if (!target[0] && t->use != FOR_PREDICTION) target = args_text(t->a, "target");
    if (!target[0] && t->use != FOR_PREDICTION) {
        t->now = DOING_SETUP; /* an error in the command line, not in the data */
        return ctn_fail(CTN_EARG, "a table needs --target: the columns of %s to predict", path);
    }
    CTN_TRY_GOTO(st, done, list_split(&inputs, args_text(t->a, "inputs")));
    CTN_TRY_GOTO(st, done, list_split(&targets, t->use == FOR_PREDICTION ? "" : target));
    st = open_columns(t, ds, path, &inputs, &targets);
done:
    list_free(&inputs);
    list_free(&targets);
    return st;
}
