// Fast emulation of the console's television chip. It replaces ALE's and is equivalent to it: values read by the
// processor, state, and screens.
//
// Most writes to the chip do not change the line, so pieces of a line are processed only when something changes.
// Collisions are computed from sets of pixels (scanline.h). Pixels are drawn only in frames that will be read; for
// other frames the writes are logged, from which the pixels can be drawn later.
#ifndef NEUROEVO_ENVS_ATARI_CONSOLE_TIA_H_
#define NEUROEVO_ENVS_ATARI_CONSOLE_TIA_H_

#include <ale/emucore/Control.hxx>
#include <ale/emucore/System.hxx>
#include <ale/emucore/TIA.hxx>
#include <array>
#include <cstdint>
#include <vector>

#include "core/hash.h"
#include "envs/atari/console/scanline.h"

namespace neuroevo {

// All of the chip's state that a game can change. Clocks are the chip's, three per processor cycle.
struct TiaState {
  // Start and form of an object on the line, set whenever ALE sets its mask: bits 0 to 7 are x, followed by NUSIZ's
  // mode, the logarithm of a missile's or ball's width, and these two flags.
  using Place = uint32_t;
  static constexpr Place kWithoutFirst = 1 << 16;  // player without its first copy: position was set within the line
  static constexpr Place kHidden = 1 << 17;

  int frame_start = 0;  // clocks
  int display_start = 0, display_stop = 0, drawn_to = 0, left_of_line = 228;
  int vsync_finish = 0x7fffffff;
  int scanlines_of_last_frame = 0, current_scanline = 0;
  int line_pixel = 0;  // offset of the current line in the frame buffer
  bool partial = false, greyed = false;

  uint8_t objects = 0;  // set of the objects that may be visible
  uint8_t vsync = 0, vblank = 0, control = 0, priority_and_score = 0;
  uint8_t size[2] = {0, 0};  // NUSIZ0 and NUSIZ1
  uint8_t color_background = 0, color_playfield = 0, color_player[2] = {0, 0};
  uint32_t playfield = 0;
  bool playfield_reflected = false;  // current value; a late change of the register applies from the next line on
  bool reflected[2] = {false, false};
  uint8_t graphics[2] = {0, 0}, delayed_graphics[2] = {0, 0}, shown_graphics[2] = {0, 0};
  bool missile[2] = {false, false}, missile_at_player[2] = {false, false};
  bool ball = false, delayed_ball = false;
  bool delays_graphics[2] = {false, false}, delays_ball = false;
  int8_t motion[5] = {0, 0, 0, 0, 0};  // indexed by TiaObject, like the next two
  int16_t position[5] = {0, 0, 0, 0, 0};
  Place place[5] = {0, 0, 0, 0, 0};
  uint16_t collisions = 0;  // latches

  int last_motion_clock = 0;
  bool motion_blank = false;
  bool cosmic_ark = false;  // missile 0 moves by itself, like the stars of Cosmic Ark
  uint32_t cosmic_ark_counter = 0;
  bool dump = false;  // whether the paddles' capacitors are dumped
  int dump_end_cycle = 0;

  bool line_end_matters = true;  // whether something changes at the line's end
  uint8_t stale = 0x3f;          // set of the objects whose bits must be recomputed
  LineBits bits[kTiaObjects];
};

constexpr int kNever = 0x7fffffff;  // a clock

class Tia final : public ale::stella::TIA {
 public:
  Tia(const ale::stella::Console& console, ale::stella::Settings& settings);

  void reset() override;
  void frameReset() override;
  void systemCyclesReset() override;
  bool save(ale::stella::Serializer& out) override;  // in ALE's format
  bool load(ale::stella::Deserializer& in) override;
  uint8_t peek(uint16_t address) override;
  void poke(uint16_t address, uint8_t value) override;
  void update() override;
  uint32_t scanlines() const override;

  // Read at the system's current cycle; the lowest bits are those that were last on the bus.
  uint8_t Read(uint16_t address, uint8_t bus);
  // Write to a register, address < 64, without the wait of WSYNC. Returns whether the processor must stop. Inline,
  // since many writes set a register to its current value.
  bool Write(uint8_t address, uint8_t value, uint32_t cycles) {
    const int clock = static_cast<int>(cycles) * 3;
    if ((settled_ >> address & 1) && value == written_[address] && clock != last_.clock && clock < overrun_) {
      SetLast(clock, address);
      return false;
    }
    return WriteChange(address, value, cycles);
  }
  // Return whether a write is so late that a new frame should have started.
  bool Overruns(uint32_t cycles) const { return static_cast<int>(cycles) * 3 >= overrun_; }
  uint32_t CycleOfNextLine(uint32_t cycles) const {
    const uint32_t in_line = (cycles - static_cast<uint32_t>(state_.frame_start / 3)) % 76;
    return in_line == 0 ? cycles : cycles + 76 - in_line;
  }
  // Perform a write to WSYNC that does not overrun. Returns the cycle at which the processor resumes.
  uint32_t WaitForLine(uint32_t cycles) {
    SetLast(static_cast<int>(cycles) * 3, 0);
    return CycleOfNextLine(cycles);
  }

  // Set whether the pixels of later frames are drawn during emulation.
  void set_draws(bool draws) { draws_ = draws; }
  // Draw the skipped pixels of both screens.
  void FinishScreens();

  // Complete state and both screens, including the parts that save() omits.
  struct Snapshot {
    TiaState state;
    std::vector<uint8_t> screen, previous_screen;
  };
  Snapshot TakeSnapshot();
  void Restore(const Snapshot& snapshot);
  // Add to the hash the parts of the state that save() omits, and both screens. Returns false within a frame, when it
  // depends on earlier accesses, too.
  bool AddUnsaved(Hash128* hash);

 private:
  struct Access {
    int clock = 0;
    uint8_t address = 0;
  };
  struct LoggedWrite {
    int clock;
    uint8_t address, value;
  };
  // Frame whose pixels have not been drawn.
  struct Frame {
    bool pending = false;
    TiaState start;
    std::vector<LoggedWrite> writes;  // only the first `count` entries are valid
    size_t count = 0;
    int end = 0;  // clock up to which the frame was emulated

    void Add(const LoggedWrite& write) {
      if (count == writes.size()) writes.resize(2 * count + 1024);
      writes[count++] = write;
    }
  };

  void StartFrame();
  void EndFrame();
  void FinishFrame();
  void KeepScreen();
  void ForgetWrites();
  int DrawnClock(const Access& access) const;
  void ColorBeyondEnd(uint8_t* screen) const;
  bool WriteChange(uint8_t address, uint8_t value, uint32_t cycles);
  bool WriteApart(uint8_t address, uint8_t value, uint32_t cycles, bool stops);
  // Apply a write to the chip's state, `in_line` clocks after the line's start.
  void Apply(TiaState& state, uint8_t address, uint8_t value, int clock, int in_line);
  void Advance(TiaState& state, int clock) {
    if (clock > state.drawn_to && clock >= state.display_start && state.drawn_to < state.display_stop)
      Draw(state, clock);
  }
  void Draw(TiaState& state, int clock);
  static void PassOver(TiaState& state, int clock);
  void Span(TiaState& state, int begin, int end);
  void ResetPlayer(TiaState& state, int player, int clock, int in_line);
  void Move(TiaState& state, int clock, int in_line);
  uint8_t Color(const TiaState& state, uint8_t value) const;
  uint8_t Paddle(ale::stella::Controller::Jack jack, ale::stella::Controller::AnalogPin pin, uint8_t noise) const;
  void Replay(Frame& frame, uint8_t* screen);
  int ClockInLine(int clock);
  Frame& frame_of(const uint8_t* screen) { return frames_[screen == screens_[0] ? 0 : 1]; }

  TiaState state_;
  Access last_, before_last_;  // ALE would have drawn up to the last access
  void SetLast(int clock, uint8_t address) {
    before_last_ = last_;
    last_ = {clock, address};
  }
  int line_start_ = 0;  // the start of a line before the last write, in clocks
  int overrun_ = 0;
  // Last written value of each register, and the set of registers for which repeating the write changes nothing.
  std::array<uint8_t, 64> written_{};
  uint64_t settled_ = 0;
  bool draws_ = true;          // whether later frames are drawn
  bool drawing_ = true;        // whether the current frame is drawn
  uint8_t* target_ = nullptr;  // the frame buffer to draw into; null to compute only collisions
  int blanked_to_ = 0;         // pixel up to which a motion blanked the screen, possibly ahead of the drawing
  const uint8_t* screens_[2];
  Frame frames_[2];  // one per screen
  Frame current_;    // the frame in progress
};

}  // namespace neuroevo

#endif  // NEUROEVO_ENVS_ATARI_CONSOLE_TIA_H_
