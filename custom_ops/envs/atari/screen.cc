#include "envs/atari/screen.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/simd.h"

namespace neuroevo {
namespace {

constexpr int kGrayBits = 7;     // 255 * 2^7 fits 15 bits, and so a signed difference of grays fits 16 bits
constexpr int kWeightBits = 14;  // gray * weight fits 31 bits

// Three passes over 16-bit grays, in a readable version and one for AVX-512. Lines are padded to whole vectors.
constexpr int kPaddedWidth = 192;

#if defined(NEUROEVO_AVX512) && defined(__AVX512BW__)

constexpr int kWords = 32;  // per vector

__m512i Load(const int16_t* words) { return _mm512_loadu_si512(words); }

// low + (((high - low) * weight) >> kWeightBits), assembled from the two halves of the product.
__m512i Blend(__m512i low, __m512i high, __m512i weight) {
  const __m512i difference = _mm512_sub_epi16(high, low);
  const __m512i upper = _mm512_slli_epi16(_mm512_mulhi_epi16(difference, weight), 16 - kWeightBits);
  const __m512i lower = _mm512_srli_epi16(_mm512_mullo_epi16(difference, weight), kWeightBits);
  return _mm512_add_epi16(low, _mm512_or_si512(upper, lower));
}

class GrayLookup {
 public:
  explicit GrayLookup(const int16_t* gray) {
    for (int i = 0; i < 8; ++i) table_[i] = Load(gray + i * kWords);
  }

  void Row(const uint8_t* a, const uint8_t* b, int16_t* out) const {
    for (int x = 0; x < kScreenWidth; x += kWords) {
      const __m256i in_a = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(a + x));
      const __m256i in_b = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(b + x));
      __m512i gray = Look(in_a);
      // Most pixels are unchanged since the last frame.
      if (_mm256_cmpneq_epu8_mask(in_a, in_b) != 0) gray = _mm512_max_epi16(gray, Look(in_b));
      _mm512_storeu_si512(out + x, gray);
    }
  }

 private:
  __m512i Look(__m256i indices) const {
    const __m512i at = _mm512_cvtepu8_epi16(indices);  // a permutation reads the lowest 6 bits
    const __mmask32 bit6 = _mm512_test_epi16_mask(at, _mm512_set1_epi16(64));
    const __mmask32 bit7 = _mm512_test_epi16_mask(at, _mm512_set1_epi16(128));
    const __m512i low = _mm512_mask_blend_epi16(bit6, _mm512_permutex2var_epi16(table_[0], at, table_[1]),
                                                _mm512_permutex2var_epi16(table_[2], at, table_[3]));
    const __m512i high = _mm512_mask_blend_epi16(bit6, _mm512_permutex2var_epi16(table_[4], at, table_[5]),
                                                 _mm512_permutex2var_epi16(table_[6], at, table_[7]));
    return _mm512_mask_blend_epi16(bit7, low, high);
  }

  __m512i table_[8];
};

void BlendRows(const int16_t* top, const int16_t* bottom, int weight, int16_t* line) {
  const __m512i weights = _mm512_set1_epi16(static_cast<int16_t>(weight));
  for (int x = 0; x < kScreenWidth; x += kWords) {
    _mm512_storeu_si512(line + x, Blend(Load(top + x), Load(bottom + x), weights));
  }
}

// A vector of output pixels depends on 64 columns, which one permutation of two vectors can index.
void BlendColumns(const int16_t* line, const int16_t* left, const int16_t* right, const int16_t* weight,
                  uint8_t* frame) {
  const __m512i half = _mm512_set1_epi16(1 << (kGrayBits - 1));
  for (int x = 0; x < kFrameSide; x += kWords) {
    const int16_t first = left[x];
    const __m512i base = _mm512_set1_epi16(first);
    const __m512i low = Load(line + first), high = Load(line + first + kWords);
    const auto columns = [&](const int16_t* at) {
      return _mm512_permutex2var_epi16(low, _mm512_sub_epi16(Load(at + x), base), high);
    };
    const __m512i value = Blend(columns(left), columns(right), Load(weight + x));
    const __m256i pixels = _mm512_cvtepi16_epi8(_mm512_srli_epi16(_mm512_add_epi16(value, half), kGrayBits));
    const int used = std::min(kWords, kFrameSide - x);
    _mm256_mask_storeu_epi8(frame + x, static_cast<__mmask32>((uint64_t{1} << used) - 1), pixels);
  }
}

#else

int Blend(int low, int high, int weight) { return low + (((high - low) * weight) >> kWeightBits); }

class GrayLookup {
 public:
  explicit GrayLookup(const int16_t* gray) : gray_(gray) {}

  void Row(const uint8_t* a, const uint8_t* b, int16_t* out) const {
    for (int x = 0; x < kScreenWidth; ++x) out[x] = gray_[a[x]];
    // Most pixels are unchanged since the last frame.
    if (std::memcmp(a, b, kScreenWidth) == 0) return;
    for (int x = 0; x < kScreenWidth; ++x) out[x] = std::max(out[x], gray_[b[x]]);
  }

 private:
  const int16_t* gray_;
};

void BlendRows(const int16_t* top, const int16_t* bottom, int weight, int16_t* line) {
  for (int x = 0; x < kScreenWidth; ++x) line[x] = static_cast<int16_t>(Blend(top[x], bottom[x], weight));
}

void BlendColumns(const int16_t* line, const int16_t* left, const int16_t* right, const int16_t* weight,
                  uint8_t* frame) {
  for (int x = 0; x < kFrameSide; ++x) {
    const int value = Blend(line[left[x]], line[right[x]], weight[x]);
    frame[x] = static_cast<uint8_t>((value + (1 << (kGrayBits - 1))) >> kGrayBits);
  }
}

#endif

}  // namespace

ScreenToFrame::ScreenToFrame(const std::array<uint32_t, 256>& rgb, int height) : rows_(Taps(height)) {
  for (int i = 0; i < 256; ++i) {
    const double gray = 0.299 * (rgb[i] >> 16 & 255) + 0.587 * (rgb[i] >> 8 & 255) + 0.114 * (rgb[i] & 255);
    gray_[i] = static_cast<int16_t>(std::lround(gray * (1 << kGrayBits)));
  }
  const std::vector<Tap> columns = Taps(kScreenWidth);
  for (int x = 0; x < kFrameSide; ++x) {
    left_[x] = static_cast<int16_t>(columns[x].low);
    right_[x] = static_cast<int16_t>(columns[x].low + columns[x].step);
    column_weight_[x] = static_cast<int16_t>(columns[x].weight);
  }
}

std::vector<ScreenToFrame::Tap> ScreenToFrame::Taps(int in) {
  std::vector<Tap> taps(kFrameSide);
  for (int out = 0; out < kFrameSide; ++out) {
    // Aligned corners: the first and last pixel of input and output coincide.
    const double at = static_cast<double>(out) * (in - 1) / (kFrameSide - 1);
    const int low = std::min(static_cast<int>(at), in - 1);
    taps[out] = {low, low + 1 < in ? 1 : 0, static_cast<int>(std::lround((at - low) * (1 << kWeightBits)))};
  }
  return taps;
}

void ScreenToFrame::Convert(const uint8_t* a, const uint8_t* b, const ChangedRows& changed, uint8_t* frame) const {
  const GrayLookup lookup(gray_.data());
  // Almost every screen row is used by an output row, most by only one: two rows of grays are cached.
  int16_t gray[2][kScreenWidth], line[kPaddedWidth] = {};
  int row_of[2] = {-1, -1};
  const auto gray_row = [&](int row) -> const int16_t* {
    int16_t* out = gray[row & 1];
    if (row_of[row & 1] != row) {
      row_of[row & 1] = row;
      lookup.Row(a + row * kScreenWidth, b + row * kScreenWidth, out);
    }
    return out;
  };
  for (int y = 0; y < kFrameSide; ++y) {
    const Tap& tap = rows_[y];
    if (!changed[tap.low] && !changed[tap.low + tap.step]) continue;
    const int16_t* top = gray_row(tap.low);
    const int16_t* bottom = gray_row(tap.low + tap.step);
    BlendRows(top, bottom, tap.weight, line);
    BlendColumns(line, left_.data(), right_.data(), column_weight_.data(), frame + y * kFrameSide);
  }
}

}  // namespace neuroevo
