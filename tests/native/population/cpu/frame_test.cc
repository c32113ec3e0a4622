// Frames, compared with the image value by value: every value in a convolution's windows is from the image or zero.
#include "population/cpu/frame.h"

#include <vector>

#include "native/check.h"

using namespace neuroevo;

namespace {

Layer ConvOf(const char* text) { return Network::Parse(text).layers()[0]; }

// Fills a frame of the input of `conv` and compares all windows.
template <class T>
void CheckWindows(const Layer& conv) {
  const auto [height, width, channels] = conv.in;
  const auto image = [&](int64_t y, int64_t x, int64_t c) { return static_cast<T>(1 + (y * 31 + x * 7 + c) % 200); };
  const Frame frame(conv.in, &conv);
  constexpr int64_t kGuard = 3;
  std::vector<T> memory(frame.size + kGuard, T{255});
  int64_t rows = 0;
  frame.Fill(memory.data(), [&](int64_t y, T* place) {
    CHECK_EQ(y, rows++);
    for (int64_t i = 0; i < frame.row_values; ++i) place[i] = image(y, i / channels, i % channels);
  });
  CHECK_EQ(rows, height);
  for (int64_t i = 0; i < kGuard; ++i) CHECK_EQ(memory[frame.size + i], T{255});
  for (int64_t y = 0; y < (conv.out[0] - 1) * conv.stride + conv.kernel_h; ++y) {
    for (int64_t x = 0; x < (conv.out[1] - 1) * conv.stride + conv.kernel_w; ++x) {
      const int64_t image_y = y - conv.pad_top, image_x = x - conv.pad_left;
      const bool inside = image_y >= 0 && image_y < height && image_x >= 0 && image_x < width;
      for (int64_t c = 0; c < channels; ++c) {
        const int64_t place = y * frame.pitch + x * channels + c;
        CHECK(place < frame.size);
        CHECK_EQ(memory[place], inside ? image(image_y, image_x, c) : T{0});
      }
    }
  }
  // ZeroBorder does not change the image.
  const std::vector<T> before = memory;
  frame.ZeroBorder(memory.data());
  CHECK_EQ(memory, before);
}

}  // namespace

TEST(WindowsSeeTheImageAndZeros) {
  for (const char* text : {
           "input uint8 84 84 4; conv 2 8 8 4 same 1.0",
           "input uint8 21 21 3; conv 2 4 4 2 same 1.0",
           "input uint8 11 7 5; conv 2 3 3 1 same 1.0",
           "input uint8 9 10 2; conv 2 4 3 3 valid 1.0",  // leaves rows and columns unread
           "input uint8 5 6 1; conv 2 1 1 2 same 1.0",    // the same
           "input uint8 1 1 2; conv 2 5 4 1 same 1.0",
       }) {
    CheckWindows<uint8_t>(ConvOf(text));
    CheckWindows<float>(ConvOf(text));
  }
}

TEST(OnlyConvolutionsHaveBorders) {
  const Layer dense = Network::Parse("input uint8 6 5 3; dense 4 1.0").layers()[0];
  for (const Layer* reader : {&dense, static_cast<const Layer*>(nullptr)}) {
    const Frame frame({6, 5, 3}, reader);
    CHECK_EQ(frame.size, 6 * 5 * 3);
    CHECK_EQ(frame.pitch, 5 * 3);
    CHECK_EQ(frame.first, 0);
  }
}
