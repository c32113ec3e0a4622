// The television chip's registers: effects of writes, values of reads, and the drawing of line segments in between.
// This file is longer than others, since all of it is on the hot path and shares small inlined functions; frames are in
// tia_frames.cc, saved states in tia_state.cc, pixels in scanline.h and paint.h.
#include "envs/atari/console/tia.h"

#include <ale/emucore/Console.hxx>
#include <ale/emucore/M6502.hxx>
#include <ale/emucore/System.hxx>
#include <algorithm>
#include <utility>

#include "envs/atari/console/paint.h"

namespace neuroevo {
namespace {

using ale::stella::Controller;

constexpr int kMotionBlank = 8;  // pixels blanked by a motion

// Bits of priority_and_score.
constexpr uint8_t kScore = 0x40, kPriority = 0x80;

// The write addresses.
enum Register : uint8_t {
  VSYNC,
  VBLANK,
  WSYNC,
  RSYNC,
  NUSIZ0,
  NUSIZ1,
  COLUP0,
  COLUP1,
  COLUPF,
  COLUBK,
  CTRLPF,
  REFP0,
  REFP1,
  PF0,
  PF1,
  PF2,
  RESP0,
  RESP1,
  RESM0,
  RESM1,
  RESBL,
  AUDC0,
  AUDC1,
  AUDF0,
  AUDF1,
  AUDV0,
  AUDV1,
  GRP0,
  GRP1,
  ENAM0,
  ENAM1,
  ENABL,
  HMP0,
  HMP1,
  HMM0,
  HMM1,
  HMBL,
  VDELP0,
  VDELP1,
  VDELBL,
  RESMP0,
  RESMP1,
  HMOVE,
  HMCLR,
  CXCLR,
};

constexpr TiaObject PlayerOf(int player) { return player == 0 ? kPlayer0 : kPlayer1; }
constexpr TiaObject MissileOf(int player) { return player == 0 ? kMissile0 : kMissile1; }

// Delay of a write's effect, in clocks after the processor's write. The playfield changes at multiples of four clocks.
constexpr std::array<int8_t, 64> MakeDelays() {
  std::array<int8_t, 64> delays{};
  for (int early : {VBLANK, REFP0, REFP1, GRP0, GRP1}) delays[early] = 1;
  for (int late : {NUSIZ0, NUSIZ1, RESM0, RESM1}) delays[late] = 8;
  for (int playfield : {PF0, PF1, PF2}) delays[playfield] = -1;
  return delays;
}
constexpr std::array<int8_t, 64> kDelays = MakeDelays();
constexpr int kPlayfieldDelays[4] = {4, 5, 2, 3};

int Delay(uint8_t address, int in_line) {
  const int delay = kDelays[address];
  return delay >= 0 ? delay : kPlayfieldDelays[in_line / 3 & 3];
}

constexpr uint64_t Bit(int address) { return uint64_t{1} << address; }
constexpr uint64_t Bits(int first, int last) { return (Bit(last) << 1) - Bit(first); }
// Registers that can settle: setting one to its current value changes nothing, or only if others were set meanwhile.
constexpr uint64_t kSettling = Bit(VBLANK) | Bits(NUSIZ0, PF2) | Bits(GRP0, RESMP1);

// Registers that affect neither the picture nor values read from the chip, and addresses without a register.
constexpr uint64_t kApart = Bit(VSYNC) | Bit(WSYNC) | Bit(RSYNC) | Bits(AUDC0, AUDV1) | ~(Bit(CXCLR + 1) - 1);

TiaState::Place PlaceOf(const TiaState& state, TiaObject object) {
  const uint32_t x = static_cast<uint32_t>(state.position[object]);
  if (object == kBall) return x | (state.control >> 4 & 3u) << 11;
  const uint32_t size = state.size[object == kPlayer0 || object == kMissile0 ? 0 : 1];
  const bool missile = object == kMissile0 || object == kMissile1;
  return x | (size & 7) << 8 | (missile ? (size >> 4 & 3) << 11 : 0);
}

void SetPlace(TiaState& state, TiaObject object, TiaState::Place place) {
  state.stale |= static_cast<uint8_t>((place != state.place[object]) << object);
  state.place[object] = place;
}

void Put(TiaState& state, TiaObject object) { SetPlace(state, object, PlaceOf(state, object)); }

void Enable(TiaState& state, TiaObject object, bool enabled) {
  const uint8_t bit = static_cast<uint8_t>(1 << object);
  state.objects = static_cast<uint8_t>(enabled ? state.objects | bit : state.objects & ~bit);
}

void SetShown(TiaState& state, int player, uint8_t graphics) {
  if (graphics == state.shown_graphics[player]) return;
  state.shown_graphics[player] = graphics;
  state.stale |= static_cast<uint8_t>(1 << PlayerOf(player));
}

void ShowGraphics(TiaState& state, int player) {
  const uint8_t graphics = state.delays_graphics[player] ? state.delayed_graphics[player] : state.graphics[player];
  SetShown(state, player, state.reflected[player] ? kByteTables.reversed[graphics] : graphics);
  Enable(state, PlayerOf(player), graphics != 0);
}

void ShowMissile(TiaState& state, int player) {
  Enable(state, MissileOf(player), state.missile[player] && !state.missile_at_player[player]);
}

void ShowBall(TiaState& state) { Enable(state, kBall, state.delays_ball ? state.delayed_ball : state.ball); }

void Reflect(TiaState& state, bool reflected) {
  if (reflected == state.playfield_reflected) return;
  state.playfield_reflected = reflected;
  state.stale |= 1 << kPlayfield;
}

uint32_t WithPlayfield(uint32_t playfield, uint8_t address, uint8_t value) {
  if (address == PF0) return (playfield & 0xffff0) | value >> 4;
  if (address == PF1) return (playfield & 0xff00f) | static_cast<uint32_t>(value) << 4;
  return (playfield & 0x00fff) | static_cast<uint32_t>(value) << 12;
}

// Return the collision latches that the objects can set and have not set.
uint16_t WantedCollisions(const TiaState& state) {
  return kPossibleCollisions[state.objects] & static_cast<uint16_t>(~state.collisions);
}

LineBits PixelsOf(const TiaState& state, int object) {
  if (object == kPlayfield) return PlayfieldBits(state.playfield, state.playfield_reflected);
  const TiaState::Place place = state.place[object];
  const int x = place & 0xff, mode = place >> 8 & 7, size = place >> 11 & 3;
  if (place & TiaState::kHidden) return {};
  if (object == kBall) return BallBits(x, size);
  if (object == kMissile0 || object == kMissile1) return MissileBits(x, mode, size);
  return PlayerBits(state.shown_graphics[object == kPlayer0 ? 0 : 1], x, mode, place & TiaState::kWithoutFirst);
}

// Return the column at which an object starts after a reset of its position.
int ResetColumn(int in_line, int in_blank, int delay) {
  return in_line < kBlankClocks ? in_blank : (in_line - kBlankClocks + delay) % kLineWidth;
}

// Return the column after a reset right after a motion, which differs because both count clocks.
int ResetAfterMotion(const TiaState& state, uint8_t address, int clock, int in_line, int column) {
  const int since = clock - state.last_motion_clock;
  if (address == RESM0) return since == 60 && in_line == 69 ? 8 : column;
  if (since == 9 && in_line == 18) return 3;
  if (address == RESM1) return column;
  if (since == 54 && (in_line == 60 || in_line == 69)) return 10;
  if (since == 21 && in_line == 30) return 6;
  return since == 18 && in_line == 27 ? 5 : column;
}

void MoveCosmicArk(TiaState& state) {
  constexpr int16_t kSteps[4] = {18, 33, 0, 17};
  state.cosmic_ark_counter = (state.cosmic_ark_counter + 1) & 3;
  int16_t& x = state.position[kMissile0];
  x = static_cast<int16_t>(x - kSteps[state.cosmic_ark_counter]);
  if (x < 0) x = static_cast<int16_t>(x + kLineWidth);
  TiaState::Place place = PlaceOf(state, kMissile0);
  if (state.cosmic_ark_counter == 1) place |= 1 << 11;
  if (state.cosmic_ark_counter == 2) place |= TiaState::kHidden;
  SetPlace(state, kMissile0, place);
}

void EndLine(TiaState& state) {
  Reflect(state, state.control & 1);
  Put(state, kPlayer0);
  Put(state, kPlayer1);
  if (state.cosmic_ark) MoveCosmicArk(state);
  state.line_end_matters = state.cosmic_ark;
}

}  // namespace

// Return the clock up to which ALE has drawn at an access, even if the access changed nothing.
int Tia::DrawnClock(const Access& access) const {
  return access.clock + Delay(access.address, (access.clock - state_.frame_start) % kLineClocks);
}

// ALE colors four pixels at once if there are only playfield and background. If a frame ends within four such pixels,
// the rest of them get the color of the first.
void Tia::ColorBeyondEnd(uint8_t* screen) const {
  const int x = kLineClocks - state_.left_of_line - kBlankClocks, first = x & ~3;
  if (x <= 0 || x >= kLineWidth || x == first || (state_.vblank & 2)) return;
  if (DrawnClock(before_last_) > state_.drawn_to - (x - first)) return;  // ALE drew the first pixel separately
  constexpr auto kSet = [](auto... objects) { return ((1 << objects) | ...); };
  const bool score = state_.priority_and_score & kScore;
  const int set = state_.objects, without_playfield = set & ~kSet(kPlayfield);
  constexpr int kFours[] = {kSet(kPlayer0),       kSet(kPlayer1),         kSet(kPlayer0, kPlayer1),
                            kSet(kMissile0),      kSet(kMissile1),        kSet(kMissile0, kMissile1),
                            kSet(kBall),          kSet(kBall, kMissile0), kSet(kBall, kMissile1),
                            kSet(kBall, kPlayer1)};
  constexpr int kFoursOnPlayfield[] = {kSet(kPlayer0), kSet(kPlayer1), kSet(kBall)};
  const auto is_of = [&](const auto& sets) {
    return std::find(std::begin(sets), std::end(sets), without_playfield) != std::end(sets);
  };
  const bool playfield = set & kSet(kPlayfield);
  const bool fours = set == kSet(kPlayfield) || (playfield ? !score && is_of(kFoursOnPlayfield) : is_of(kFours));
  if (!fours) return;
  const uint64_t four = uint64_t{0xf} << first % 64;
  for (int objects = without_playfield; objects != 0; objects &= objects - 1) {
    const int object = __builtin_ctz(static_cast<unsigned>(objects));
    TiaState whole = state_;  // a player counts wherever it might be visible
    whole.shown_graphics[0] = whole.shown_graphics[1] = 0xff;
    if (PixelsOf(whole, object).word(first / 64) & four) return;
  }
  uint8_t color = state_.color_background;
  if (playfield && (PixelsOf(state_, kPlayfield).word(first / 64) & four)) {
    color = !score ? state_.color_playfield : state_.color_player[first < kLineWidth / 2 ? 0 : 1];
  }
  for (int pixel = x; pixel < first + 4; ++pixel) {
    if (state_.line_pixel + pixel >= blanked_to_) screen[state_.line_pixel + pixel] = color;
  }
}

int Tia::ClockInLine(int clock) {
  int in_line = clock - line_start_;
  if (in_line >= kLineClocks) {
    in_line %= kLineClocks;
    line_start_ = clock - in_line;
  }
  return in_line;
}

uint8_t Tia::Read(uint16_t address, uint8_t bus) {
  const int clock = static_cast<int>(mySystem->cycles()) * 3;
  SetLast(clock, 0);
  const uint8_t noise = bus & 0x3f;
  const int reg = address & 0xf;
  if (reg < 8) {  // two latches; CXBLPF has only one
    Advance(state_, clock);
    constexpr uint8_t kFirst[8] = {0, 2, 4, 6, 8, 10, 12, 13};
    const unsigned latches = state_.collisions >> kFirst[reg];
    const uint8_t second = reg == 6 ? 0 : static_cast<uint8_t>((latches & 2) << 5);
    return static_cast<uint8_t>((latches & 1) << 7 | second | noise);
  }
  switch (reg) {
    case 0x8:
      return Paddle(Controller::Left, Controller::Nine, noise);
    case 0x9:
      return Paddle(Controller::Left, Controller::Five, noise);
    case 0xa:
      return Paddle(Controller::Right, Controller::Nine, noise);
    case 0xb:
      return Paddle(Controller::Right, Controller::Five, noise);
    case 0xc:
      return static_cast<uint8_t>(myConsole.controller(Controller::Left).read(Controller::Six) << 7 | noise);
    case 0xd:
      return static_cast<uint8_t>(myConsole.controller(Controller::Right).read(Controller::Six) << 7 | noise);
    default:
      return noise;
  }
}

// Read a paddle: whether its capacitor has been charged since it was dumped.
uint8_t Tia::Paddle(Controller::Jack jack, Controller::AnalogPin pin, uint8_t noise) const {
  const int r = myConsole.controller(jack).read(pin);
  if (r == Controller::minimumResistance) return 0x80 | noise;
  if (r == Controller::maximumResistance || state_.dump) return noise;
  const double seconds = 1.6 * r * 0.01E-6;
  const uint32_t needed = static_cast<uint32_t>(seconds * 1.19E6);
  return mySystem->cycles() > static_cast<uint32_t>(state_.dump_end_cycle) + needed ? 0x80 | noise : noise;
}

uint8_t Tia::peek(uint16_t address) {
  Advance(state_, static_cast<int>(mySystem->cycles()) * 3);
  return Read(address, mySystem->getDataBusState());
}

void Tia::poke(uint16_t full_address, uint8_t value) {
  const uint8_t address = full_address & 0x3f;
  const int clock = static_cast<int>(mySystem->cycles()) * 3;
  Advance(state_, clock + Delay(address, ClockInLine(clock)));  // not deferred, since the state may be read meanwhile
  if (Write(address, value, mySystem->cycles())) mySystem->m6502().stop();
  if (address == WSYNC && mySystem->m6502().lastAccessWasRead()) {
    mySystem->incrementCycles(CycleOfNextLine(mySystem->cycles()) - mySystem->cycles());
  }
}

bool Tia::WriteApart(uint8_t address, uint8_t value, uint32_t cycles, bool stops) {
  if (address >= AUDC0 && address <= AUDV1) mySound->set(address, value, static_cast<int>(cycles));
  if (address != VSYNC) return stops;
  const int clock = static_cast<int>(cycles) * 3;
  state_.vsync = value;
  if (value & 2) {
    state_.vsync_finish = clock + kLineClocks;
  } else if (clock >= state_.vsync_finish) {
    state_.vsync_finish = kNever;
    state_.partial = false;
    return true;
  }
  return stops;
}

bool Tia::WriteChange(uint8_t address, uint8_t value, uint32_t cycles) {
  const int clock = static_cast<int>(cycles) * 3;
  if (clock == last_.clock && (settled_ >> last_.address & 1)) {
    // The second write of an instruction. ALE has drawn up to the first write, which we may have skipped.
    if (!drawing_) current_.Add({clock, last_.address, written_[last_.address]});
    Advance(state_, clock + Delay(last_.address, ClockInLine(clock)));
  }
  SetLast(clock, address);
  bool stops = clock >= overrun_;
  if (stops) state_.partial = false;
  if ((settled_ >> address & 1) && value == written_[address]) return stops;
  if (kApart >> address & 1) return WriteApart(address, value, cycles, stops);
  if (!drawing_) current_.Add({clock, address, value});
  written_[address] = value;
  settled_ |= Bit(address) & kSettling;
  Apply(state_, address, value, clock, ClockInLine(clock));
  return stops;
}

uint8_t Tia::Color(const TiaState& state, uint8_t value) const {
  const bool lost = myColorLossEnabled && (state.scanlines_of_last_frame & 1);
  return static_cast<uint8_t>((value & 0xfe) | lost);
}

void Tia::Apply(TiaState& state, uint8_t address, uint8_t value, int clock, int in_line) {
  // Motion registers and HMCLR do not affect the line before the next motion.
  if ((address < HMP0 || address > HMBL) && address != HMCLR) Advance(state, clock + Delay(address, in_line));
  switch (address) {
    case VBLANK:
      if (!(state.vblank & 0x80) && (value & 0x80)) state.dump = true;
      if ((state.vblank & 0x80) && !(value & 0x80)) {
        state.dump = false;
        state.dump_end_cycle = clock / 3;
      }
      state.vblank = value;
      break;
    case NUSIZ0:
    case NUSIZ1: {
      const int player = address - NUSIZ0;
      state.size[player] = value;
      Put(state, PlayerOf(player));
      Put(state, MissileOf(player));
      break;
    }
    case COLUP0:
    case COLUP1:
      state.color_player[address - COLUP0] = Color(state, value);
      break;
    case COLUPF:
      state.color_playfield = Color(state, value);
      break;
    case COLUBK:
      state.color_background = Color(state, value);
      break;
    case CTRLPF:
      state.control = value;
      state.priority_and_score = static_cast<uint8_t>((value & 6) << 5);
      if (in_line < kBlankClocks + 79) {
        Reflect(state, value & 1);
      } else {
        state.line_end_matters = true;
        settled_ &= ~Bit(CTRLPF);
      }
      Put(state, kBall);
      break;
    case REFP0:
    case REFP1: {
      const int player = address - REFP0;
      if (state.reflected[player] == ((value & 8) != 0)) break;
      state.reflected[player] = value & 8;
      SetShown(state, player, kByteTables.reversed[state.shown_graphics[player]]);
      break;
    }
    case PF0:
    case PF1:
    case PF2:
      state.playfield = WithPlayfield(state.playfield, address, value);
      state.stale |= 1 << kPlayfield;
      Enable(state, kPlayfield, state.playfield != 0);
      break;
    case RESP0:
    case RESP1:
      ResetPlayer(state, address - RESP0, clock, in_line);
      break;
    case RESM0:
    case RESM1:
    case RESBL: {
      const TiaObject object = address == RESBL ? kBall : MissileOf(address - RESM0);
      const int column = ResetColumn(in_line, 2, 4);
      state.position[object] = static_cast<int16_t>(ResetAfterMotion(state, address, clock, in_line, column));
      Put(state, object);
      break;
    }
    case GRP0:
      state.graphics[0] = value;
      state.delayed_graphics[1] = state.graphics[1];
      settled_ &= ~Bit(GRP1);
      ShowGraphics(state, 0);
      ShowGraphics(state, 1);
      break;
    case GRP1:
      state.graphics[1] = value;
      state.delayed_graphics[0] = state.graphics[0];
      state.delayed_ball = state.ball;
      settled_ &= ~Bit(GRP0);
      ShowGraphics(state, 0);
      ShowGraphics(state, 1);
      ShowBall(state);
      break;
    case ENAM0:
    case ENAM1:
      state.missile[address - ENAM0] = value & 2;
      ShowMissile(state, address - ENAM0);
      break;
    case ENABL:
      state.ball = value & 2;
      settled_ &= ~Bit(GRP1);
      ShowBall(state);
      break;
    case HMM0:  // Cosmic Ark's trick: the motion is changed while it is in progress
      if (clock == state.last_motion_clock + 21 * 3 && state.motion[kMissile0] == 7 && value >> 4 == 6) {
        Advance(state, clock);
        state.cosmic_ark = state.line_end_matters = true;
        state.cosmic_ark_counter = 0;
      }
      [[fallthrough]];
    case HMP0:
    case HMP1:
    case HMM1:
    case HMBL:
      state.motion[kMotionOrder[address - HMP0]] = static_cast<int8_t>(value >> 4);
      break;
    case VDELP0:
    case VDELP1:
      state.delays_graphics[address - VDELP0] = value & 1;
      ShowGraphics(state, address - VDELP0);
      break;
    case VDELBL:
      state.delays_ball = value & 1;
      ShowBall(state);
      break;
    case RESMP0:
    case RESMP1: {
      const int player = address - RESMP0;
      if (state.missile_at_player[player] && !(value & 2)) {
        const int mode = state.size[player] & 7;
        const int middle = mode == 5 ? 8 : mode == 7 ? 16 : 4;
        state.position[MissileOf(player)] =
            static_cast<int16_t>((state.position[PlayerOf(player)] + middle) % kLineWidth);
        Put(state, MissileOf(player));
      }
      state.missile_at_player[player] = value & 2;
      ShowMissile(state, player);
      break;
    }
    case HMOVE:
      Move(state, clock, in_line);
      break;
    case HMCLR:
      std::fill(std::begin(state.motion), std::end(state.motion), static_cast<int8_t>(0));
      settled_ &= ~Bits(HMP0, HMBL);
      break;
    case CXCLR:
      state.collisions = 0;
      break;
    default:
      break;
  }
}

// A player whose position is reset while a copy is being drawn, or is about to be, is also drawn at the new position.
void Tia::ResetPlayer(TiaState& state, int player, int clock, int in_line) {
  const TiaObject object = PlayerOf(player);
  const int column = ResetColumn(in_line, 3, 5);
  const int mode = state.size[player] & 7;
  const int width = mode == 5 ? 16 : mode == 7 ? 32 : 8;
  constexpr int kDelay = 4;
  bool about_to = false, shown = false;
  for (const int8_t* copy = kCopies[mode]; *copy >= 0; ++copy) {
    int since = column - state.position[object] - *copy;
    since += since < -kLineWidth ? 2 * kLineWidth : since < 0 ? kLineWidth : 0;
    about_to |= since < kDelay;
    shown |= since >= kDelay && since < kDelay + width;
  }
  if (shown) Advance(state, clock + 11);
  state.position[object] = static_cast<int16_t>(column);
  SetPlace(state, object, PlaceOf(state, object) | (about_to ? 0 : TiaState::kWithoutFirst));
  state.line_end_matters = true;
  settled_ &= ~Bit(NUSIZ0 + player);
}

void Tia::Move(TiaState& state, int clock, int in_line) {
  const int cycle = in_line / 3;
  if (myAllowHMOVEBlanks && ourHMOVEBlankEnableCycles[cycle]) state.motion_blank = true;
  for (TiaObject object : kMotionOrder) {
    int x = state.position[object] + ourCompleteMotionTable[cycle][static_cast<int>(state.motion[object])];
    if (x >= kLineWidth) x -= kLineWidth;
    if (x < 0) x += kLineWidth;
    state.position[object] = static_cast<int16_t>(x);
    Put(state, object);
  }
  state.last_motion_clock = clock;
  state.cosmic_ark = false;
}

// Advance to a clock without drawing or detecting collisions.
void Tia::PassOver(TiaState& state, int clock) {
  const int from = kLineClocks - state.left_of_line, to = from + clock - state.drawn_to;  // relative to this line
  constexpr int kBlankEnd = kBlankClocks + kMotionBlank;
  if ((from < kBlankEnd && to >= kBlankEnd) || to >= kLineClocks + kBlankEnd) state.motion_blank = false;
  state.drawn_to = clock;
  const int lines = to <= kLineClocks ? 0 : (to - 1) / kLineClocks;  // a line includes its end
  state.left_of_line = kLineClocks - (to - lines * kLineClocks);
  state.line_pixel += lines * kLineWidth;
}

// Draw from the current position of the picture up to a clock, in pieces of lines.
void Tia::Draw(TiaState& state, int clock) {
  clock = std::min(clock, state.display_stop);
  if (target_ == nullptr && !state.line_end_matters && ((state.vblank & 2) || WantedCollisions(state) == 0)) {
    return PassOver(state, clock);
  }
  do {
    int from = kLineClocks - state.left_of_line, clocks;
    if (clock > state.drawn_to + state.left_of_line) {
      clocks = state.left_of_line;
      state.left_of_line = kLineClocks;
      state.drawn_to += clocks;
    } else {
      clocks = clock - state.drawn_to;
      state.left_of_line -= clocks;
      state.drawn_to = clock;
    }
    const int blank = from < kBlankClocks ? std::min(kBlankClocks - from, clocks) : 0;
    from += blank;
    clocks -= blank;
    if (clocks != 0) Span(state, from - kBlankClocks, from - kBlankClocks + clocks);
    if (state.motion_blank && from < kBlankClocks + kMotionBlank) {
      if (target_ != nullptr) {
        const int pixel = state.line_pixel + std::max(from - kBlankClocks, 0),
                  black = kBlankClocks + kMotionBlank - from;
        if (black == kMotionBlank) {  // the usual case, which the compiler turns into one store
          std::fill_n(target_ + pixel, kMotionBlank, uint8_t{0});
        } else {
          std::fill_n(target_ + pixel, black, uint8_t{0});
        }
        blanked_to_ = pixel + black;
      }
      if (from + clocks >= kBlankClocks + kMotionBlank) state.motion_blank = false;
    }
    if (state.left_of_line == kLineClocks) {
      state.line_pixel += kLineWidth;
      if (state.line_end_matters) EndLine(state);
    }
  } while (state.drawn_to < clock);
}

// Compute the collisions and, if they are drawn, the colors of pixels [begin, end) of the line.
void Tia::Span(TiaState& state, int begin, int end) {
  uint8_t* line = target_ == nullptr ? nullptr : target_ + state.line_pixel;
  if (state.vblank & 2) {
    if (line != nullptr) std::fill(line + begin, line + end, uint8_t{0});
    return;
  }
  const uint16_t wanted = WantedCollisions(state);
  if (wanted == 0 && line == nullptr) return;
  for (unsigned stale = state.stale & state.objects; stale != 0; stale &= stale - 1) {
    const int object = __builtin_ctz(stale);
    state.bits[object] = PixelsOf(state, object);
  }
  state.stale &= static_cast<uint8_t>(~state.objects);
  if (wanted != 0) state.collisions |= Collisions(state.bits, wanted, begin, end);
  if (line == nullptr) return;
  const LineColors colors = {state.color_background, state.color_playfield, state.color_player[0],
                             state.color_player[1]};
  Paint(state.bits, state.objects, state.priority_and_score & kPriority, state.priority_and_score & kScore, colors,
        begin, end, line);
}

}  // namespace neuroevo
