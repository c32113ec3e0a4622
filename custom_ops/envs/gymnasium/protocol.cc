#include "envs/gymnasium/protocol.h"

#include <iterator>
#include <utility>

#include "core/error.h"

namespace neuroevo {
namespace {

constexpr int64_t kMaxActions = 1 << 20;
constexpr uint32_t kMaxRank = 8, kMaxSide = 1 << 13;  // limits of observations and of screens

template <class... Parts>
[[noreturn]] void ThrowMalformed(const Parts&... parts) {
  throw Error(Error::Kind::kInternal, Concat("malformed message of a gymnasium worker: ", parts...));
}

void CheckKind(const MessageReader& message, GymnasiumMessage expected) {
  if (message.kind() == expected) return;
  ThrowMalformed("kind ", static_cast<int>(message.kind()), ", expected ", static_cast<int>(expected));
}

}  // namespace

std::string MessageWriter::Finish() {
  const auto length = static_cast<uint32_t>(message_.size() - sizeof(uint32_t));
  std::memcpy(message_.data(), &length, sizeof(length));
  return std::move(message_);
}

const char* MessageReader::Bytes(const char* what, size_t size) {
  if (size > body_.size()) ThrowMalformed(what, " takes ", size, " bytes, ", body_.size(), " are left");
  const char* bytes = body_.data();
  body_.remove_prefix(size);
  return bytes;
}

std::string MessageReader::Text(const char* what) {
  const auto size = Number<uint32_t>(what);
  return std::string(Bytes(what, size), size);
}

void MessageReader::Finish() const {
  if (!body_.empty()) ThrowMalformed(body_.size(), " bytes are left over");
}

GymnasiumSpec ReadGymnasiumSpec(MessageReader* message) {
  CheckKind(*message, GymnasiumMessage::kSpec);
  const auto version = message->Number<uint32_t>("version");
  if (version != kGymnasiumVersion) ThrowMalformed("version ", version, ", expected ", kGymnasiumVersion);
  GymnasiumSpec read;
  EnvSpec& spec = read.spec;
  const auto dtype = message->Number<uint8_t>("dtype");
  constexpr DType kDTypes[] = {DType::kUint8, DType::kFloat32, DType::kFloat64};
  if (dtype >= std::size(kDTypes)) ThrowMalformed("observation dtype ", int{dtype}, ", expected 0, 1 or 2");
  spec.observation_dtype = kDTypes[dtype];
  const auto rank = message->Number<uint32_t>("rank");
  if (rank < 1 || rank > kMaxRank) ThrowMalformed("observation rank ", rank, ", expected 1 to ", kMaxRank);
  int64_t room = static_cast<int64_t>(kMaxMessageBytes) / 16;  // numbers that fit in a message with any dtype
  for (uint32_t i = 0; i < rank; ++i) {
    const auto dimension = message->Number<int64_t>("dimension");
    if (dimension < 1 || dimension > room)
      ThrowMalformed("observation dimension ", dimension, ", expected 1 to ", room);
    room /= dimension;
    spec.observation_shape.push_back(dimension);
  }
  spec.action_dtype = message->Number<uint8_t>("discrete") != 0 ? DType::kInt32 : DType::kFloat32;
  spec.num_actions = message->Number<int64_t>("number of actions");
  if (spec.num_actions < 1 || spec.num_actions > kMaxActions) {
    ThrowMalformed("number of actions ", spec.num_actions, ", expected 1 to ", kMaxActions);
  }
  if (!spec.discrete()) {
    for (auto* bounds : {&spec.action_low, &spec.action_high}) {
      for (int64_t a = 0; a < spec.num_actions; ++a) bounds->push_back(message->Number<float>("bound"));
    }
  }
  read.max_steps = message->Number<int64_t>("step limit");
  if (read.max_steps < 0) ThrowMalformed("step limit ", read.max_steps, ", expected 0 or more");
  const auto height = message->Number<uint32_t>("height"), width = message->Number<uint32_t>("width");
  if (height > kMaxSide || width > kMaxSide)
    ThrowMalformed("screen of ", height, "x", width, ", expected at most 8192");
  if (height > 0 && width > 0) spec.render_shape = {height, width, 3};
  message->Finish();
  return read;
}

std::string ReadGymnasiumError(MessageReader* message) {
  const std::string raised = message->Text("exception"), traceback = message->Text("traceback");
  message->Finish();
  return traceback.empty() ? raised : raised + "\n" + traceback;
}

GymnasiumResult ReadGymnasiumResult(MessageReader* message, std::vector<double>* behavior, int64_t bytes,
                                    char* observation) {
  CheckKind(*message, GymnasiumMessage::kResult);
  const auto reward = message->Number<double>("reward");
  const auto ended = message->Number<uint8_t>("ended");
  for (double& number : *behavior) number = message->Number<double>("behavior");
  const char* read = message->Bytes("observation", static_cast<size_t>(bytes));
  message->Finish();
  std::memcpy(observation, read, static_cast<size_t>(bytes));
  return {reward, {(ended & 1) != 0, (ended & 2) != 0}};
}

void ReadGymnasiumScreen(MessageReader* message, int64_t bytes, uint8_t* rgb) {
  CheckKind(*message, GymnasiumMessage::kScreen);
  const char* read = message->Bytes("screen", static_cast<size_t>(bytes));
  message->Finish();
  std::memcpy(rgb, read, static_cast<size_t>(bytes));
}

}  // namespace neuroevo
