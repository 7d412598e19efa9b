#include "idx.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "errors.h"
#include "example_files.h"
#include "idx_bytes.h"

namespace fashion_mnist {
namespace {

std::string refusal(const std::string& bytes, std::size_t dimensions) {
  const std::vector<std::uint8_t> copy(bytes.begin(), bytes.end());
  return text_of<DataError>([&] { parse_idx(copy, dimensions); });
}

TEST(Idx, GivesShapeAndValues) {
  const std::string text = idx_bytes({2, 1, 3}, "abcdef");
  const std::vector<std::uint8_t> bytes(text.begin(), text.end());
  const IdxArray array = parse_idx(bytes, 3);
  EXPECT_EQ(array.shape, (std::vector<std::int64_t>{2, 1, 3}));
  EXPECT_EQ(std::string(array.values.begin(), array.values.end()), "abcdef");
}

TEST(Idx, RefusesEveryCutOfAFile) {
  const std::string whole = idx_bytes({2, 2}, "abcd");
  ASSERT_EQ(refusal(whole, 2), "");
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_NE(refusal(whole.substr(0, size), 2), "") << "cut to " << size << " bytes";
  }
  EXPECT_EQ(refusal(whole.substr(0, 7), 2), "ends within its header: 7 of 12 bytes");
}

TEST(Idx, RefusesBytesAfterTheEnd) {
  EXPECT_EQ(refusal(idx_bytes({2}, "abc"), 1), "is damaged: 3 bytes follow its header, which promises 2");
}

TEST(Idx, RefusesWhatIsNoIdxFile) {
  EXPECT_EQ(refusal("<html><body>404", 1), "is not an idx file: its first two bytes are not zero");
  EXPECT_EQ(refusal(std::string("\0\0\x0d\x01\0\0\0\x01xxxx", 12), 1),
            "holds elements of type 13, not unsigned bytes (8)");
  EXPECT_EQ(refusal(idx_bytes({1, 1}, "a"), 1), "has 2 dimensions, not 1");
}

TEST(Idx, RefusesASizeThatOverflows) {
  const std::string huge = idx_bytes({0xffffffff, 0xffffffff, 0xffffffff}, "abc");
  EXPECT_EQ(refusal(huge, 3), "is cut off: its header promises more than the 3 bytes that follow it");
}

TEST(Idx, RefusesAnEmptyDimension) { EXPECT_EQ(refusal(idx_bytes({0, 3}, ""), 2), "is empty: dimension 0 is 0"); }

}  // namespace
}  // namespace fashion_mnist
