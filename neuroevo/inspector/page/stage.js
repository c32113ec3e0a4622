"use strict";
// Playback of two members side by side: video, results, genome and actions.

{
  const { byId, get, make, number, array } = inspector;
  const POLL = 250; // ms
  const SHOWN = 6; // maximum number of named actions
  const calls = { a: 0, b: 0 }; // a later call for a slot cancels an earlier one
  const redraws = { a: null, b: null };

  const slotOf = (slot) => document.querySelector(`.stage[data-slot="${slot}"]`);
  const title = (generation, index) => make("h3", {}, `Generation ${generation}, member ${index}`);
  const screen = (text, kind = "") => make("div", { class: `screen ${kind}` }, text);

  function empty(slot, text) {
    slotOf(slot).replaceChildren(make("h3", {}, slot === "a" ? "No member selected" : "No comparison"), screen(text));
  }

  function rows(played, chooseEpisode) {
    const of = (name, ...value) => make("tr", {}, make("th", { scope: "row" }, name), make("td", {}, ...value));
    const same =
      played.same === null ? "" : played.same ? make("span", { class: "match", title: "The replayed episode has the same return" }, " ✓ as in the run") : make("span", { class: "mismatch" }, ` but ${number(played.fitness, 10)} in the run`);
    const found = [of("return", number(played.return, 10), same)];
    if (played.episodes > 1) {
      found.push(of("fitness", `${number(played.fitness, 10)}, from ${played.episodes} episodes`));
      found.push(of("episode", chooseEpisode, inspector.exported ? " (only the first has a video)" : ""));
    }
    found.push(of("steps", number(played.steps), played.steps === played.max_episode_steps ? " (cut off)" : ""));
    found.push(of("seed", make("code", {}, played.seed)));
    if (played.failure) found.push(of("failure", played.failure));
    const { root, mutations, last, kind, network } = played.genome;
    const shortRoot = root.length > 24 ? `${root.slice(0, 20)}…` : root;
    found.push(of("genome", `${number(mutations)} mutation${mutations === 1 ? "" : "s"}${kind && kind !== "Gaussian" ? ` (last: ${kind})` : ""} of `, make("code", { title: root }, shortRoot)));
    if (last.length) {
      const [seed, scale] = last.at(-1);
      found.push(of("last mutation", make("code", {}, seed), ` × ${number(scale, 4)}`));
    }
    if (network) found.push(of("network", make("code", {}, network)));
    return make("table", {}, ...found);
  }

  function rolled(played) {
    const { actions } = played;
    const name = (action) => actions.names[action] || action;
    if (actions.continuous) {
      const names = actions.names.length ? `: ${actions.names.slice(0, SHOWN).join(", ")}${actions.count > SHOWN ? ", …" : ""}` : "";
      const numbers = actions.count === 1 ? "action" : `${actions.count} action dimensions`;
      return `${numbers} per step${names}; blue: positive, orange: negative`;
    }
    const shares = inspector.shares(actions).filter(([, share]) => share >= 0.005);
    return "actions: " + shares.slice(0, SHOWN).map(([action, share]) => `${name(action)} ${Math.round(100 * share)}%`).join(", ");
  }

  // Selection of a member's episodes; selecting an episode plays it.
  function episodeChoice(slot, generation, index, episodes, episode) {
    const select = make("select", { "aria-label": "Episode" });
    inspector.options(select, Array.from({ length: episodes }, (_, place) => [place, place + 1]), episode);
    select.disabled = inspector.exported;
    select.addEventListener("change", () => inspector.play(slot, generation, index, Number(select.value)));
    return select;
  }

  function show(slot, generation, index, episode, played) {
    let seen;
    const canvas = make("canvas", { role: "img", "aria-label": "Actions of the member per step" });
    let video = null;
    if (played.video) {
      video = make("video", { class: inspector.isMaze() ? "diagram" : "", src: `videos/${played.file}`, controls: "", loop: "", playsinline: "", preload: "auto" });
      video.muted = true;
      video.autoplay = true;
      seen = video;
    } else {
      seen = screen(`No video: ${played.note}`);
    }
    slotOf(slot).replaceChildren(title(generation, index), seen, rows(played, episodeChoice(slot, generation, index, played.episodes, episode)), make("p", { class: "rolls" }, rolled(played)), canvas);
    const draw = () => inspector.drawRoll(canvas, played.actions, video && video.duration ? video.currentTime / video.duration : 0);
    redraws[slot] = draw;
    draw();
    if (video) {
      video.addEventListener("timeupdate", draw);
      video.addEventListener("error", () => video.replaceWith(screen("This browser cannot play the video.", "failed")));
    }
    const path = played.path && { x: array(played.path.x), y: array(played.path.y) };
    inspector.say("played", slot, { run: inspector.state.run, generation, index, path });
  }

  // Play an episode of a member in a slot, "a" or "b".
  inspector.play = async (slot, generation, index, episode = 0) => {
    const call = ++calls[slot];
    const { run } = inspector.state;
    const element = slotOf(slot);
    redraws[slot] = null;
    inspector.onStage[slot] = { generation, index };
    if (slot === "a" && generation === inspector.state.generation) byId("member").value = index;
    const wait = screen("loading …");
    element.replaceChildren(title(generation, index), wait);
    inspector.say("played", slot, { run, generation, index, path: null });
    for (;;) {
      let now;
      try {
        now = await get(`play/${run}/${generation}/${index}/${episode}`);
      } catch (error) {
        now = { state: "failed", error: inspector.exported ? `${error.message}; available: ${exportedMembers(run)}` : error.message };
      }
      if (call !== calls[slot]) return;
      if (now.state === "done") {
        show(slot, generation, index, episode, now);
        inspector.say("stage");
        return;
      }
      if (now.state === "failed") {
        wait.replaceWith(screen(now.error, "failed"));
        return;
      }
      wait.textContent = now.state === "playing" ? `playing, step ${number(now.steps)} …` : "queued …";
      await new Promise((resolve) => setTimeout(resolve, POLL));
    }
  };

  function exportedMembers(run) {
    const all = inspector.state.overview.exported.played[run] || [];
    return all.map(([generation, index]) => `member ${index} of generation ${generation}`).join(", ") || "no members";
  }

  inspector.onStage = { a: null, b: null };
  inspector.clearStage = () => {
    for (const slot of ["a", "b"]) {
      calls[slot]++;
      inspector.onStage[slot] = redraws[slot] = null;
      empty(slot, slot === "a" ? "Click a dot, or select a member above." : "Shift-click a dot, or select “right” above, to compare.");
    }
  };

  // Return the slot that a click plays a member in: the selected side, or with Shift the right one.
  inspector.slotFor = (event) => (event.shiftKey ? "b" : byId("side").value);

  byId("choose").addEventListener("submit", (event) => {
    event.preventDefault();
    inspector.play(inspector.slotFor(event), inspector.state.generation, Number(byId("member").value));
  });
  for (const name of ["elite", "fittest"]) {
    byId(name).addEventListener("click", async (event) => {
      inspector.play(inspector.slotFor(event), ...(await inspector[name](inspector.state.generation)));
    });
  }
  const redraw = () => Object.values(redraws).forEach((draw) => draw && draw());
  inspector.on("theme", redraw);
  addEventListener("resize", redraw);
}
