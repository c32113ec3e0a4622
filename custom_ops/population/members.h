// Which rows of a population are members of low rank (networks/low_rank.h), and of which centers: the bookkeeping and
// its checks, for every backend.
#ifndef NEUROEVO_POPULATION_MEMBERS_H_
#define NEUROEVO_POPULATION_MEMBERS_H_

#include <cstdint>
#include <vector>

namespace neuroevo {

class Members {
 public:
  struct Member {
    int64_t center = -1;   // a row that holds weights
    uint64_t content = 0;  // of that row when the member was filled
    float scale = 0;
  };

  // rank 0: there are none. Otherwise rows [float_rows, rows) are; -1: none. Throws for a rank or a number of rows that
  // is out of range.
  Members(int rank, int64_t float_rows, int64_t rows);

  int rank() const { return rank_; }
  // Rows [0, weight_rows()) hold weights.
  int64_t weight_rows() const { return weight_rows_; }
  int64_t count() const { return static_cast<int64_t>(members_.size()); }
  bool Is(int64_t row) const { return row >= weight_rows_; }
  const Member& Of(int64_t row) const { return members_[row - weight_rows_]; }
  void Set(int64_t row, const Member& member) { members_[row - weight_rows_] = member; }

  // Throws for a member, which cannot be filled with weights or be what another row is made from.
  void CheckHoldsWeights(const char* what, int64_t row) const;
  // Throws for a filled member whose center has other weights by now. content: [R], of all rows.
  void CheckCenter(int64_t row, const std::vector<uint64_t>& content) const;

 private:
  int rank_;
  int64_t weight_rows_;
  std::vector<Member> members_;
};

}  // namespace neuroevo

#endif  // NEUROEVO_POPULATION_MEMBERS_H_
