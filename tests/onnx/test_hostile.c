/* SPDX-License-Identifier: Apache-2.0
 *
 * Models that were made to read or write outside of arrays: tensors with several lists of values.
 * Each is refused with a message.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <catena/catena.h>

#include <cmocka.h>

#include "onnx/onnx.h"
#include "support/check.h"
#include "support/ok.h"

#ifdef CTN_HAVE_PROTOBUFC

#include "hostile.h"

enum {
    FLOAT = ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT,
    UINT8 = ONNX__TENSOR_PROTO__DATA_TYPE__UINT8,
    INT32 = ONNX__TENSOR_PROTO__DATA_TYPE__INT32,
    INT64 = ONNX__TENSOR_PROTO__DATA_TYPE__INT64,
    BOOL = ONNX__TENSOR_PROTO__DATA_TYPE__BOOL
};

/* ---- values of tensors ----------------------------------------------------------------------- */

static void test_lists(void **state)
{
    (void)state;
    static float f[4] = {1, 2, 3, 4};
    static double d[64];
    static int32_t i32[4] = {1, 0, 1, 0};
    static int64_t i64[64];
    static uint64_t u64[4];
    static uint8_t raw[32];
    for (int i = 0; i < 8; i++) {
        char names[] = "c y";
        maker *k = model(13);
        node(k, "Identity", "id", names);
        Onnx__TensorProto *t = weight(k, "c", 4, 0, f);
        if (i == 0) t->double_data = d, t->n_double_data = 64;
        if (i == 1) t->data_type = INT64, t->int64_data = i64, t->n_int64_data = 4;
        if (i == 2) t->raw_data = (ProtobufCBinaryData){16, raw}, t->has_raw_data = 1;
        if (i == 3) t->data_type = INT32; /* a list of another type only */
        if (i == 4) t->uint64_data = u64, t->n_uint64_data = 4;
        if (i >= 5) {
            t->n_float_data = 0;
            t->data_type = BOOL;
            t->int32_data = i32;
            t->n_int32_data = 4;
        }
        if (i == 5) t->double_data = d, t->n_double_data = 64;
        if (i == 6) t->int64_data = i64, t->n_int64_data = 64;
        if (i == 7) {
            t->has_data_location = 1;
            t->data_location = ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL;
        }
        refused("lists", k, CTN_EFORMAT, "expected one");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lists),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

int main(void)
{
    return 77;
}

#endif
