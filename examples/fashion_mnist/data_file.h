#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

namespace fashion_mnist {

/// The whole content of a file, unpacked when it is a gzip file.
/// \throws DataError  missing, unreadable, cut off, damaged or larger than 1 GiB; names the file.
std::vector<std::uint8_t> read_data_file(const std::filesystem::path& path);

/// `folder`/`name`, or `folder`/`name`.gz when only that exists.
/// \throws DataError  neither exists; says which package has the files.
std::filesystem::path find_data_file(const std::filesystem::path& folder, const std::string& name);

}  // namespace fashion_mnist
