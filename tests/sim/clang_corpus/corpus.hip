// SPDX-License-Identifier: Apache-2.0
// All HIP kernels of the corpus in one translation unit; build.py compiles it with -DWAVE=32 or 64.
#include "prelude.h"

#include "integer.hip"
#include "floating.hip"
#include "conversions.hip"
#include "packed.hip"
#include "lanes.hip"
#include "memory.hip"
#include "control.hip"
