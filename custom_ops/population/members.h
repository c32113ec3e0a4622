// Bookkeeping of low-rank members (networks/low_rank.h), shared by all backends: the rows of a population that are
// members, their centers, and the checks of both.
#ifndef NEUROEVO_POPULATION_MEMBERS_H_
#define NEUROEVO_POPULATION_MEMBERS_H_

#include <cstdint>
#include <vector>

namespace neuroevo {

class Members {
 public:
  struct Member {
    int64_t center = -1;   // a row that holds weights
    uint64_t content = 0;  // content number of the center when the member was filled
    float scale = 0;
  };

  // Rows [float_rows, rows) are members; with rank 0 or float_rows -1 no row is. Throws if rank or float_rows is out of
  // range.
  Members(int rank, int64_t float_rows, int64_t rows);

  int rank() const { return rank_; }
  // Rows [0, weight_rows()) hold weights.
  int64_t weight_rows() const { return weight_rows_; }
  int64_t count() const { return static_cast<int64_t>(members_.size()); }
  bool Is(int64_t row) const { return row >= weight_rows_; }
  const Member& Of(int64_t row) const { return members_[row - weight_rows_]; }
  void Set(int64_t row, const Member& member) { members_[row - weight_rows_] = member; }

  // Throws if the row is a member, which can neither be filled with weights nor be the source of another row.
  void CheckHoldsWeights(const char* what, int64_t row) const;
  // Throws if the center of a filled member has been refilled since. content: content numbers of all rows, [R].
  void CheckCenter(int64_t row, const std::vector<uint64_t>& content) const;

 private:
  int rank_;
  int64_t weight_rows_;
  std::vector<Member> members_;
};

}  // namespace neuroevo

#endif  // NEUROEVO_POPULATION_MEMBERS_H_
