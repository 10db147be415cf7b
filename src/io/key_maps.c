/* SPDX-License-Identifier: Apache-2.0
 *
 * The names that other programs give to the arrays of networks in the zoo. A map is a prefix that
 * a wrapper puts in front of all names, together with a family of names. weights_match.c tries
 * the maps if the names of the model are not those of the file. A new family is one table of rules
 * and one line in `families`. How the files of Hugging Face differ is part of each network
 * (ctn__published), because these are the usual files.
 */
#include "io/weights.h"

/* Patterns of a variable's name and of the name in the file. The text that a * stands for, which
 * has no dot unless it is at the end, is the same in both. */
typedef struct {
    const char *own, *file;
    int part, parts; /* parts 0: the whole array */
} rule;

/* The query, key and value matrices are the three parts of one array in both. */
static const rule timm_vit[] = {
    {"vit.embeddings.cls_token", "cls_token", 0, 0},
    {"vit.embeddings.position_embeddings", "pos_embed", 0, 0},
    {"vit.embeddings.patch_embeddings.projection.*", "patch_embed.proj.*", 0, 0},
    {"vit.encoder.layer.*.layernorm_before.*", "blocks.*.norm1.*", 0, 0},
    {"vit.encoder.layer.*.attention.attention.query.*", "blocks.*.attn.qkv.*", 0, 3},
    {"vit.encoder.layer.*.attention.attention.key.*", "blocks.*.attn.qkv.*", 1, 3},
    {"vit.encoder.layer.*.attention.attention.value.*", "blocks.*.attn.qkv.*", 2, 3},
    {"vit.encoder.layer.*.attention.output.dense.*", "blocks.*.attn.proj.*", 0, 0},
    {"vit.encoder.layer.*.layernorm_after.*", "blocks.*.norm2.*", 0, 0},
    {"vit.encoder.layer.*.intermediate.dense.*", "blocks.*.mlp.fc1.*", 0, 0},
    {"vit.encoder.layer.*.output.dense.*", "blocks.*.mlp.fc2.*", 0, 0},
    {"vit.layernorm.*", "norm.*", 0, 0},
    {"classifier.*", "head.*", 0, 0},
    {0},
};

#define LAYER "encoder.layers.encoder_layer_*."
static const rule torchvision_vit[] = {
    {"vit.embeddings.cls_token", "class_token", 0, 0},
    {"vit.embeddings.position_embeddings", "encoder.pos_embedding", 0, 0},
    {"vit.embeddings.patch_embeddings.projection.*", "conv_proj.*", 0, 0},
    {"vit.encoder.layer.*.layernorm_before.*", LAYER "ln_1.*", 0, 0},
    {"vit.encoder.layer.*.attention.attention.query.*", LAYER "self_attention.in_proj_*", 0, 3},
    {"vit.encoder.layer.*.attention.attention.key.*", LAYER "self_attention.in_proj_*", 1, 3},
    {"vit.encoder.layer.*.attention.attention.value.*", LAYER "self_attention.in_proj_*", 2, 3},
    {"vit.encoder.layer.*.attention.output.dense.*", LAYER "self_attention.out_proj.*", 0, 0},
    {"vit.encoder.layer.*.layernorm_after.*", LAYER "ln_2.*", 0, 0},
    {"vit.encoder.layer.*.intermediate.dense.*", LAYER "mlp.0.*", 0, 0},
    {"vit.encoder.layer.*.intermediate.dense.*", LAYER "mlp.linear_1.*", 0, 0}, /* older */
    {"vit.encoder.layer.*.output.dense.*", LAYER "mlp.3.*", 0, 0},
    {"vit.encoder.layer.*.output.dense.*", LAYER "mlp.linear_2.*", 0, 0},
    {"vit.layernorm.*", "encoder.ln.*", 0, 0},
    {"classifier.*", "heads.head.*", 0, 0},
    {0},
};

static const struct family {
    const char *title;
    const rule *rules; /* NULL: the names are those of the model */
} families[] = {
    {NULL, NULL},
    {"timm", timm_vit},
    {"torchvision", torchvision_vit},
};
enum { FAMILIES = sizeof families / sizeof *families };

/* DataParallel, Lightning, torch.compile, and what people call the network in their own class. */
static const char *const prefixes[] = {
    "",     "module.",   "model.", "_orig_mod.", "module._orig_mod.", "_orig_mod.module.",
    "net.", "backbone.",
};
enum { PREFIXES = sizeof prefixes / sizeof *prefixes };

int ctn__key_maps(void)
{
    return FAMILIES * PREFIXES;
}

const char *ctn__key_map_title(int map, char *buf, size_t n)
{
    const char *family = families[map / PREFIXES].title, *prefix = prefixes[map % PREFIXES];
    if (map == 0) return NULL;
    snprintf(buf, n, "%s%s%s%s%s", family ? "names of " : "", family ? family : "",
             family && *prefix ? ", " : "", *prefix ? "prefix " : "", prefix);
    return buf;
}

/* Match s with a pattern, and write the same text into the pattern `to`. */
static bool rewrite(const char *pattern, const char *s, const char *to, char *buf, size_t n)
{
    size_t used = 0;
    for (; *pattern; pattern++) {
        if (*pattern != '*') {
            if (*s++ != *pattern) return false;
            continue;
        }
        const size_t k = pattern[1] ? strcspn(s, ".") : strlen(s);
        const size_t before = strcspn(to, "*");
        if (before + k >= n - used) return false;
        snprintf(buf + used, n - used, "%.*s%.*s", (int)before, to, (int)k, s);
        used += before + k;
        to += before + 1;
        s += k;
    }
    if (*s || strlen(to) >= n - used) return false;
    snprintf(buf + used, n - used, "%s", to);
    return true;
}

bool ctn__key_map_next(int map, const char *name, int *at, ctn__key *key)
{
    const rule *rules = families[map / PREFIXES].rules;
    const char *prefix = prefixes[map % PREFIXES];
    const size_t n = strlen(prefix);
    snprintf(key->name, sizeof key->name, "%s", prefix);
    key->part = 0;
    key->parts = 1;
    if (!rules) {
        snprintf(key->name + n, sizeof key->name - n, "%s", name);
        return (*at)++ == 0;
    }
    while (rules[*at].own) {
        const rule *r = &rules[(*at)++];
        if (!rewrite(r->own, name, r->file, key->name + n, sizeof key->name - n)) continue;
        key->part = r->part;
        key->parts = r->parts ? r->parts : 1;
        return true;
    }
    return false;
}
