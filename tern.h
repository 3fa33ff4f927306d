#pragma once

/// All of tern's public headers.

#include "tern/autograd/parameter.h"
#include "tern/autograd/variable.h"
#include "tern/core/tensor.h"
