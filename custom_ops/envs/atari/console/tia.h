// The console's television chip, as fast as we can emulate it. It takes the place of ALE's and is equal to it: what the
// processor reads from it, its state, and the screens.
//
// Most writes to the chip change nothing on the line, so that pieces of a line are looked at only when something does.
// Then collisions come from sets of pixels (scanline.h). Pixels are made in frames that will be looked at; of any other
// frame the writes are kept, from which its pixels can be made later.
#ifndef NEUROEVO_ENVS_ATARI_CONSOLE_TIA_H_
#define NEUROEVO_ENVS_ATARI_CONSOLE_TIA_H_

#include <ale/emucore/Control.hxx>
#include <ale/emucore/System.hxx>
#include <ale/emucore/TIA.hxx>
#include <array>
#include <cstdint>
#include <vector>

#include "envs/atari/console/scanline.h"

namespace neuroevo {

// Everything in the chip that a game can change. Clocks are the chip's, three to a cycle of the processor.
struct TiaState {
  // Where an object begins on the line and in which form it is shown, set whenever ALE sets its mask: bits 0 to 7 are
  // x, then NUSIZ's mode, the logarithm of a missile's or ball's width, and these two.
  using Place = uint32_t;
  static constexpr Place kWithoutFirst = 1 << 16;  // of a player, since its position was set in the middle of a line
  static constexpr Place kHidden = 1 << 17;

  int frame_start = 0;  // clocks
  int display_start = 0, display_stop = 0, drawn_to = 0, left_of_line = 228;
  int vsync_finish = 0x7fffffff;
  int scanlines_of_last_frame = 0, current_scanline = 0;
  int line_pixel = 0;  // in the frame buffer, where the line begins that is drawn
  bool partial = false, greyed = false;

  uint8_t objects = 0;  // the set of those that may be shown
  uint8_t vsync = 0, vblank = 0, control = 0, priority_and_score = 0;
  uint8_t size[2] = {0, 0};  // NUSIZ0 and NUSIZ1
  uint8_t color_background = 0, color_playfield = 0, color_player[2] = {0, 0};
  uint32_t playfield = 0;
  bool playfield_reflected = false;  // now; the register counts from the next line on if it is set late
  bool reflected[2] = {false, false};
  uint8_t graphics[2] = {0, 0}, delayed_graphics[2] = {0, 0}, shown_graphics[2] = {0, 0};
  bool missile[2] = {false, false}, missile_at_player[2] = {false, false};
  bool ball = false, delayed_ball = false;
  bool delays_graphics[2] = {false, false}, delays_ball = false;
  int8_t motion[5] = {0, 0, 0, 0, 0};  // indexed by TiaObject, as the next two
  int16_t position[5] = {0, 0, 0, 0, 0};
  Place place[5] = {0, 0, 0, 0, 0};
  uint16_t collisions = 0;  // latches

  int last_motion_clock = 0;
  bool motion_blank = false;
  bool cosmic_ark = false;  // missile 0 moves by itself, as the stars of Cosmic Ark
  uint32_t cosmic_ark_counter = 0;
  bool dump = false;  // of the paddles' capacitors
  int dump_end_cycle = 0;

  bool line_end_matters = true;  // since something changes there
  uint8_t stale = 0x3f;          // the objects whose bits have to be made anew
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

  // A read at the system's cycle, of which the lowest bits are those that were last on the bus.
  uint8_t Read(uint16_t address, uint8_t bus);
  // Writes to a register, address < 64, without the wait of WSYNC. Returns whether the processor has to stop. Inline,
  // since many writes set a register to the value that it has.
  bool Write(uint8_t address, uint8_t value, uint32_t cycles) {
    const int clock = static_cast<int>(cycles) * 3;
    if ((settled_ >> address & 1) && value == written_[address] && clock != last_.clock && clock < overrun_) {
      SetLast(clock, address);
      return false;
    }
    return WriteChange(address, value, cycles);
  }
  // Whether a write is so late that there should have been a new frame.
  bool Overruns(uint32_t cycles) const { return static_cast<int>(cycles) * 3 >= overrun_; }
  uint32_t CycleOfNextLine(uint32_t cycles) const {
    const uint32_t in_line = (cycles - static_cast<uint32_t>(state_.frame_start / 3)) % 76;
    return in_line == 0 ? cycles : cycles + 76 - in_line;
  }
  // A write to WSYNC that does not overrun. Returns the cycle at which the processor goes on.
  uint32_t WaitForLine(uint32_t cycles) {
    SetLast(static_cast<int>(cycles) * 3, 0);
    return CycleOfNextLine(cycles);
  }

  // Whether the pixels of frames that begin from now on are made while they are emulated.
  void set_draws(bool draws) { draws_ = draws; }
  // Makes the pixels of both screens that were left out.
  void FinishScreens();

  // All of the state, and both screens: what save() leaves out, too.
  struct Snapshot {
    TiaState state;
    std::vector<uint8_t> screen, previous_screen;
  };
  Snapshot TakeSnapshot();
  void Restore(const Snapshot& snapshot);

 private:
  struct Access {
    int clock = 0;
    uint8_t address = 0;
  };
  struct LoggedWrite {
    int clock;
    uint8_t address, value;
  };
  // A frame whose pixels have not been made.
  struct Frame {
    bool pending = false;
    TiaState start;
    std::vector<LoggedWrite> writes;  // of which the first `count` are its own
    size_t count = 0;
    int end = 0;  // up to which clock it was drawn

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
  // Everything that a write does in the chip itself, `in_line` clocks after the line's start.
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
  Access last_, before_last_;  // up to the last ALE would have drawn
  void SetLast(int clock, uint8_t address) {
    before_last_ = last_;
    last_ = {clock, address};
  }
  int line_start_ = 0;  // the clock at which some line began before the last write
  int overrun_ = 0;
  // What each register was last set to, and those for which to set them to it again would change nothing.
  std::array<uint8_t, 64> written_{};
  uint64_t settled_ = 0;
  bool draws_ = true;          // of frames to come
  bool drawing_ = true;        // of the frame that goes on
  uint8_t* target_ = nullptr;  // the frame buffer that is drawn into; none for collisions only
  int blanked_to_ = 0;         // the pixel up to which a motion made the screen black, which may be ahead
  const uint8_t* screens_[2];
  Frame frames_[2];  // of each screen
  Frame current_;    // the one that goes on
};

}  // namespace neuroevo

#endif  // NEUROEVO_ENVS_ATARI_CONSOLE_TIA_H_
