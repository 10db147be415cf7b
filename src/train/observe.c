/* SPDX-License-Identifier: Apache-2.0
 *
 * Observes a number that a user's function returns. Runs before the log is written, so that the
 * row of the log has all values of its step.
 */
#include "train/train.h"

typedef struct {
    char *name;
    double (*value)(void *self, ctn_trainer *tr);
    void *self;
} observer;

static ctn_status call(void *self, ctn_trainer *tr)
{
    const observer *o = self;
    return ctn_trainer_observe(tr, o->name, o->value(o->self, tr));
}

static void release(void *self)
{
    observer *o = self;
    ctn__free(o->name);
    ctn__free(o);
}

ctn_status ctn_extend_observe(ctn_trainer *tr, const ctn_trigger *when, const char *name,
                              double (*value)(void *self, ctn_trainer *tr), void *self)
{
    char full[256];
    if (!tr || !name || !value)
        return ctn_fail(CTN_EARG, "extend_observe: needs a trainer, a name and a function");
    observer *o = ctn__malloc(sizeof *o);
    if (!o) return CTN_ENOMEM;
    *o = (observer){ctn__strdup(name), value, self};
    if (!o->name) {
        ctn__free(o);
        return CTN_ENOMEM;
    }
    snprintf(full, sizeof full, "observe:%s", name);
    return ctn__extend(tr,
                       &(ctn_extension){.name = full,
                                        .priority = CTN_PRIORITY_EVALUATE,
                                        .call = call,
                                        .release = release,
                                        .self = o},
                       when, (ctn_trigger){.kind = CTN_EVERY_EPOCHS, .n = 1});
}
