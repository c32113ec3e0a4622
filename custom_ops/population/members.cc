#include "population/members.h"

#include "core/error.h"
#include "networks/low_rank.h"

namespace neuroevo {

Members::Members(int rank, int64_t float_rows, int64_t rows) : rank_(rank), weight_rows_(rows) {
  if (rank == 0) return;
  low_rank::CheckRank(rank);
  if (float_rows == -1) return;
  if (float_rows < 1 || float_rows > rows) {
    ThrowInvalid("float_rows is ", float_rows, ", expected -1 or a number in [1, ", rows,
                 "]: members need a row of weights");
  }
  weight_rows_ = float_rows;
  members_.resize(rows - float_rows);
}

void Members::CheckHoldsWeights(const char* what, int64_t row) const {
  if (!Is(row)) return;
  ThrowInvalid(what, " ", row, " is a member, which holds no weights of its own: expected one of rows [0, ",
               weight_rows_, ")");
}

void Members::CheckCenter(int64_t row, const std::vector<uint64_t>& content) const {
  if (!Is(row) || content[Of(row).center] == Of(row).content) return;
  ThrowInvalid("row ", row, " is a member of row ", Of(row).center,
               ", which has been filled with other weights since: fill the member again first");
}

}  // namespace neuroevo
