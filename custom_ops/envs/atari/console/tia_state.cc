// The television chip's part of a saved state, in ALE's format.
#include <ale/emucore/Deserializer.hxx>
#include <ale/emucore/Serializer.hxx>
#include <ale/emucore/System.hxx>

#include "envs/atari/console/tia.h"

namespace neuroevo {

bool Tia::save(ale::stella::Serializer& out) {
  try {
    const TiaState& state = state_;
    out.putString(name());
    const auto gray = [](uint8_t color) { return static_cast<int>(color * 0x01010101u); };
    for (int each : {state.frame_start, state.display_start, state.display_stop, state.drawn_to, state.left_of_line,
                     state.scanlines_of_last_frame, state.current_scanline, state.vsync_finish, int{state.objects},
                     int{state.vsync}, int{state.vblank}, int{state.size[0]}, int{state.size[1]},
                     gray(state.color_player[0]), gray(state.color_player[1]), gray(state.color_playfield),
                     gray(state.color_background), int{state.control}, int{state.priority_and_score}}) {
      out.putInt(each);
    }
    out.putBool(state.reflected[0]);
    out.putBool(state.reflected[1]);
    for (uint32_t each : {state.playfield, uint32_t{state.graphics[0]}, uint32_t{state.graphics[1]},
                          uint32_t{state.delayed_graphics[0]}, uint32_t{state.delayed_graphics[1]}}) {
      out.putInt(static_cast<int>(each));
    }
    for (bool each : {state.missile[0], state.missile[1], state.ball, state.delayed_ball}) out.putBool(each);
    for (TiaObject object : kMotionOrder) out.putInt(state.motion[object]);
    for (bool each : {state.delays_graphics[0], state.delays_graphics[1], state.delays_ball, state.missile_at_player[0],
                      state.missile_at_player[1]}) {
      out.putBool(each);
    }
    out.putInt(state.collisions);
    for (TiaObject object : kMotionOrder) out.putInt(state.position[object]);
    out.putInt(state.shown_graphics[0]);
    out.putInt(state.shown_graphics[1]);
    out.putInt(state.last_motion_clock);
    out.putBool(state.motion_blank);
    out.putBool(state.cosmic_ark);
    out.putInt(static_cast<int>(state.cosmic_ark_counter));
    out.putBool(state.dump);
    out.putInt(state.dump_end_cycle);
    mySound->save(out);
  } catch (...) {
    return false;
  }
  return true;
}

// As in ALE, the objects' masks on the line, and so the screen, are not part of the saved state.
bool Tia::load(ale::stella::Deserializer& in) {
  try {
    if (in.getString() != name()) return false;
    TiaState& state = state_;
    for (int* each :
         {&state.frame_start, &state.display_start, &state.display_stop, &state.drawn_to, &state.left_of_line,
          &state.scanlines_of_last_frame, &state.current_scanline, &state.vsync_finish}) {
      *each = in.getInt();
    }
    for (uint8_t* each : {&state.objects, &state.vsync, &state.vblank, &state.size[0], &state.size[1],
                          &state.color_player[0], &state.color_player[1], &state.color_playfield,
                          &state.color_background, &state.control, &state.priority_and_score}) {
      *each = static_cast<uint8_t>(in.getInt());
    }
    state.reflected[0] = in.getBool();
    state.reflected[1] = in.getBool();
    state.playfield = static_cast<uint32_t>(in.getInt());
    for (uint8_t* each :
         {&state.graphics[0], &state.graphics[1], &state.delayed_graphics[0], &state.delayed_graphics[1]}) {
      *each = static_cast<uint8_t>(in.getInt());
    }
    for (bool* each : {&state.missile[0], &state.missile[1], &state.ball, &state.delayed_ball}) *each = in.getBool();
    for (TiaObject object : kMotionOrder) state.motion[object] = static_cast<int8_t>(in.getInt());
    for (bool* each : {&state.delays_graphics[0], &state.delays_graphics[1], &state.delays_ball,
                       &state.missile_at_player[0], &state.missile_at_player[1]}) {
      *each = in.getBool();
    }
    state.collisions = static_cast<uint16_t>(in.getInt());
    for (TiaObject object : kMotionOrder) state.position[object] = static_cast<int16_t>(in.getInt());
    state.shown_graphics[0] = static_cast<uint8_t>(in.getInt());
    state.shown_graphics[1] = static_cast<uint8_t>(in.getInt());
    state.last_motion_clock = in.getInt();
    state.motion_blank = in.getBool();
    state.cosmic_ark = in.getBool();
    state.cosmic_ark_counter = static_cast<uint32_t>(in.getInt());
    state.dump = in.getBool();
    state.dump_end_cycle = in.getInt();
    mySound->load(in);
  } catch (...) {
    return false;
  }
  state_.stale = 0x3f;
  state_.line_end_matters = true;
  ForgetWrites();
  return true;
}

}  // namespace neuroevo
