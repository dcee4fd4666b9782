// SPDX-License-Identifier: Apache-2.0
// Stands where HIP's own header is not installed, so that a source may include it either way. What a kernel needs of it
// is in radiowave/hip.h, which Radiowave includes before every source.
#include <radiowave/hip.h>
