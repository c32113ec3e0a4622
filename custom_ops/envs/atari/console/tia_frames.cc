// Frames of the television chip: immediate and deferred drawing, and snapshots.
#include <ale/emucore/Console.hxx>
#include <ale/emucore/M6502.hxx>
#include <ale/emucore/System.hxx>
#include <algorithm>
#include <utility>

#include "envs/atari/console/tia.h"

namespace neuroevo {
namespace {

constexpr int kInstructionsPerUpdate = 25'000;
constexpr int kScreenBytes = kLineWidth * 300;

}  // namespace

Tia::Tia(const ale::stella::Console& console, ale::stella::Settings& settings)
    : TIA(console, settings), screens_{myCurrentFrameBuffer, myPreviousFrameBuffer} {}

void Tia::reset() {
  const bool partial = state_.partial, greyed = state_.greyed;  // not changed by ALE's reset
  state_ = TiaState();
  state_.partial = partial;
  state_.greyed = greyed;
  TIA::reset();  // also calls frameReset()
}

void Tia::frameReset() {
  TIA::frameReset();
  for (Frame& frame : frames_) frame.pending = false;
  drawing_ = true;
  target_ = myCurrentFrameBuffer;
  state_.frame_start = static_cast<int>(mySystem->cycles()) * 3;
  state_.display_start = state_.frame_start + static_cast<int>(myStartDisplayOffset);
  state_.display_stop = state_.frame_start + static_cast<int>(myStopDisplayOffset);
  state_.drawn_to = state_.frame_start;
  state_.left_of_line = kLineClocks;
  state_.vsync_finish = kNever;
  state_.scanlines_of_last_frame = state_.current_scanline = 0;
  state_.line_pixel = blanked_to_ = 0;
  ForgetWrites();
}

// For states in which the values or times of earlier writes are unknown.
void Tia::ForgetWrites() {
  settled_ = 0;
  last_ = before_last_ = {state_.drawn_to, 0};
  line_start_ = state_.frame_start;
  overrun_ = state_.frame_start + kLineClocks * (myMaximumNumberOfScanlines + 1);
}

void Tia::systemCyclesReset() {
  const int cycles = static_cast<int>(mySystem->cycles()), clocks = 3 * cycles;
  mySound->adjustCycleCounter(-cycles);
  state_.dump_end_cycle -= cycles;
  for (int* clock :
       {&state_.frame_start, &state_.display_start, &state_.display_stop, &state_.drawn_to, &state_.vsync_finish,
        &state_.last_motion_clock, &last_.clock, &before_last_.clock, &line_start_, &overrun_}) {
    *clock = static_cast<int>(static_cast<unsigned>(*clock) - static_cast<unsigned>(clocks));
  }
}

uint32_t Tia::scanlines() const {
  return (mySystem->cycles() * 3 - static_cast<uint32_t>(state_.frame_start)) / kLineClocks;
}

void Tia::update() {
  if (!state_.partial) StartFrame();
  state_.partial = true;
  mySystem->m6502().execute(kInstructionsPerUpdate);
  Advance(state_, DrawnClock(last_));
  state_.current_scanline = static_cast<int>(scanlines());
  if (!state_.partial) return EndFrame();
  FinishFrame();
  if (!state_.greyed) greyOutFrame();
  state_.greyed = true;
}

void Tia::StartFrame() {
  std::swap(myCurrentFrameBuffer, myPreviousFrameBuffer);
  const int clocks =
      static_cast<int>((mySystem->cycles() * 3 - static_cast<uint32_t>(state_.frame_start)) % kLineClocks);
  mySystem->resetCycles();
  state_.frame_start = -clocks;
  state_.display_start = state_.frame_start + static_cast<int>(myStartDisplayOffset);
  state_.display_stop = state_.frame_start + static_cast<int>(myStopDisplayOffset);
  state_.drawn_to = state_.display_start;
  last_ = before_last_ = {state_.display_start, 0};
  state_.left_of_line = kLineClocks;
  state_.line_pixel = blanked_to_ = 0;
  line_start_ = state_.frame_start;
  overrun_ = state_.frame_start + kLineClocks * (myMaximumNumberOfScanlines + 1);
  if (myColorLossEnabled) {
    const uint8_t odd = state_.scanlines_of_last_frame & 1;
    for (uint8_t* color :
         {&state_.color_player[0], &state_.color_player[1], &state_.color_playfield, &state_.color_background}) {
      *color = static_cast<uint8_t>((*color & 0xfe) | odd);
    }
  }
  state_.greyed = false;
  drawing_ = draws_;
  target_ = drawing_ ? myCurrentFrameBuffer : nullptr;
  if (drawing_) return;
  current_.start = state_;
  current_.count = 0;
}

void Tia::EndFrame() {
  state_.scanlines_of_last_frame = state_.current_scanline;
  ++myFrameCounter;
  state_.greyed = false;
  if (state_.drawn_to < state_.display_stop) return FinishFrame();
  Frame& frame = frame_of(myCurrentFrameBuffer);
  frame.pending = !drawing_;
  if (drawing_) return;
  current_.end = state_.drawn_to;
  std::swap(frame.start, current_.start);
  std::swap(frame.writes, current_.writes);
  frame.count = std::exchange(current_.count, 0);
  frame.end = current_.end;
}

// A frame that does not cover the screen keeps parts of the earlier frame: then both must be drawn.
void Tia::FinishFrame() {
  Frame& before = frame_of(myCurrentFrameBuffer);
  if (drawing_) {
    if (before.pending) KeepScreen();
  } else {
    if (before.pending) Replay(before, myCurrentFrameBuffer);
    current_.end = state_.drawn_to;
    Replay(current_, myCurrentFrameBuffer);
  }
  ColorBeyondEnd(myCurrentFrameBuffer);
  drawing_ = true;
  target_ = myCurrentFrameBuffer;
}

// Draw the screen's earlier frame where the current frame has not drawn yet.
void Tia::KeepScreen() {
  const int in_line = kLineClocks - state_.left_of_line;
  const int begin = std::max(state_.line_pixel + std::max(in_line - kBlankClocks, 0), blanked_to_);
  std::vector<uint8_t> drawn(myCurrentFrameBuffer, myCurrentFrameBuffer + begin);
  Replay(frame_of(myCurrentFrameBuffer), myCurrentFrameBuffer);
  std::copy(drawn.begin(), drawn.end(), myCurrentFrameBuffer);
}

void Tia::FinishScreens() {
  for (uint8_t* screen : {myCurrentFrameBuffer, myPreviousFrameBuffer}) {
    Frame& frame = frame_of(screen);
    if (frame.pending) Replay(frame, screen);
  }
}

void Tia::Replay(Frame& frame, uint8_t* screen) {
  const int blanked_to = blanked_to_;
  target_ = screen;
  TiaState state = frame.start;
  for (size_t i = 0; i < frame.count; ++i) {
    const LoggedWrite& write = frame.writes[i];
    Apply(state, write.address, write.value, write.clock, (write.clock - state.frame_start) % kLineClocks);
  }
  Advance(state, frame.end);
  target_ = drawing_ ? myCurrentFrameBuffer : nullptr;
  blanked_to_ = blanked_to;
  frame.pending = false;
}

Tia::Snapshot Tia::TakeSnapshot() {
  FinishScreens();
  return {state_,
          {myCurrentFrameBuffer, myCurrentFrameBuffer + kScreenBytes},
          {myPreviousFrameBuffer, myPreviousFrameBuffer + kScreenBytes}};
}

bool Tia::AddUnsaved(Hash128* hash) {
  if (state_.partial) return false;
  FinishScreens();
  hash->Add(state_.line_pixel);
  hash->Add(state_.greyed);
  hash->Add(state_.playfield_reflected);
  hash->Add(state_.place, sizeof(state_.place));
  hash->Add(myCurrentFrameBuffer, kScreenBytes);
  hash->Add(myPreviousFrameBuffer, kScreenBytes);
  return true;
}

void Tia::Restore(const Snapshot& snapshot) {
  state_ = snapshot.state;
  std::copy(snapshot.screen.begin(), snapshot.screen.end(), myCurrentFrameBuffer);
  std::copy(snapshot.previous_screen.begin(), snapshot.previous_screen.end(), myPreviousFrameBuffer);
  for (Frame& frame : frames_) frame.pending = false;
  drawing_ = true;
  target_ = myCurrentFrameBuffer;
  ForgetWrites();
}

}  // namespace neuroevo
