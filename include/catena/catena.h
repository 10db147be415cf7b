/* SPDX-License-Identifier: Apache-2.0
 *
 * All of Catena. Most programs include only this header.
 */
#ifndef CATENA_CATENA_H
#define CATENA_CATENA_H

#include <catena/base.h>
#include <catena/comm.h>
#include <catena/context.h>
#include <catena/data.h>
#include <catena/datasets.h>
#include <catena/dist.h>
#include <catena/env.h>
#include <catena/generate.h>
#include <catena/image.h>
#include <catena/info.h>
#include <catena/io.h>
#include <catena/log.h>
#include <catena/nn.h>
#include <catena/onnx_export.h>

#include <catena/onnx.h>
#include <catena/op.h>
#include <catena/ops.h>
#include <catena/optim.h>
#include <catena/tensor.h>
#include <catena/text.h>
#include <catena/train.h>
#include <catena/tune.h>
#include <catena/zoo.h>

#endif
