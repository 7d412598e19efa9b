// The part of fmt that is not templates of its callers, compiled once for the whole project
// (cmake/LrunDependencies.cmake).
#ifndef FMT_HEADER_ONLY

#include <fmt/format-inl.h>

namespace fmt::detail {

template dragonbox::decimal_fp<float> dragonbox::to_decimal(float) noexcept;
template dragonbox::decimal_fp<double> dragonbox::to_decimal(double) noexcept;
template thousands_sep_result<char> thousands_sep_impl(locale_ref);
template thousands_sep_result<wchar_t> thousands_sep_impl(locale_ref);
template char decimal_point_impl(locale_ref);
template wchar_t decimal_point_impl(locale_ref);

}  // namespace fmt::detail

#endif  // FMT_HEADER_ONLY
