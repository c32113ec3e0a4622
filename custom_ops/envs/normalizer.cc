#include "envs/normalizer.h"

#include <cmath>
#include <utility>

#include "core/error.h"

namespace neuroevo {

Normalizer::Normalizer(std::vector<double> mean, std::vector<double> std)
    : mean_(std::move(mean)), std_(std::move(std)) {
  if (mean_.size() != std_.size()) {
    ThrowInvalid("mean has ", mean_.size(), " values and std ", std_.size(), ", expected equal lengths");
  }
  for (size_t i = 0; i < mean_.size(); ++i) {
    if (!std::isfinite(mean_[i])) ThrowInvalid("mean[", i, "] is ", mean_[i], ", expected a finite number");
    if (!std::isfinite(std_[i]) || std_[i] <= 0) {
      ThrowInvalid("std[", i, "] is ", std_[i], ", expected a finite number above 0");
    }
  }
}

void Normalizers::Set(int64_t number, std::shared_ptr<const Normalizer> normalizer) {
  if (number < 0) ThrowInvalid("number of a normalizer is ", number, ", expected 0 or more");
  std::lock_guard<std::mutex> lock(mutex_);
  const auto [found, is_new] = by_number_.emplace(number, normalizer);
  if (!is_new && !(*found->second == *normalizer)) {
    ThrowInvalid("normalizer ", number, " is already set to different values, expected an unused number");
  }
}

void Normalizers::Drop(const std::vector<int64_t>& numbers) {
  std::lock_guard<std::mutex> lock(mutex_);
  for (int64_t number : numbers) {
    if (by_number_.count(number) == 0) ThrowNotFound("normalizer ", number, " is not set");
  }
  for (int64_t number : numbers) by_number_.erase(number);
}

std::vector<std::shared_ptr<const Normalizer>> Normalizers::Find(const std::vector<int64_t>& numbers) const {
  std::vector<std::shared_ptr<const Normalizer>> all;
  std::lock_guard<std::mutex> lock(mutex_);
  for (int64_t number : numbers) {
    const auto found = by_number_.find(number);
    if (number != -1 && found == by_number_.end()) ThrowNotFound("normalizer ", number, " is not set");
    all.push_back(number == -1 ? nullptr : found->second);
  }
  return all;
}

}  // namespace neuroevo
