#pragma once

/// All of tern's public headers.

#include "tern/autograd/parameter.h"
#include "tern/autograd/variable.h"
#include "tern/core/tensor.h"
#include "tern/data/digits.h"
#include "tern/data/loader.h"
#include "tern/data/mnist.h"
