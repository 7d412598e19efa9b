#pragma once

/// Marks what liblrun exports; everything else in it is hidden.
#define LRUN_EXPORT __attribute__((visibility("default")))
