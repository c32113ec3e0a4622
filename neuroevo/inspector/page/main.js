"use strict";
// Starts the page, moves the slider, and follows runs in training.

{
  const { byId, get, make, state } = inspector;
  const POLL = 2000; // ms
  const BEGINNING = 8; // generations, as in inspection.py
  const FRAME = 120; // ms per generation of the animation
  let playing = null;

  inspector.setGeneration = (number) => {
    const last = Math.max(inspector.run().generations - 1, 0);
    state.generation = Math.min(Math.max(number, 0), last);
    byId("generation").value = state.generation;
    byId("generation-number").textContent = state.generation;
    inspector.say("generation");
  };

  function showProblem(text) {
    byId("problem").hidden = !text;
    byId("problem").textContent = text;
  }

  function head() {
    const { overview } = state;
    const run = inspector.run();
    byId("run-choice").hidden = overview.runs.length < 2;
    const label = (each) => (each.title && overview.runs.length > 1 ? `${each.name}: ${each.title}` : each.name);
    inspector.options(byId("run"), overview.runs.map((each, place) => [place, label(each)]), state.run);
    const seed = run.seed === null ? "" : `, seed ${run.seed}`;
    byId("title").replaceChildren(`${run.title}${seed} · ${run.generations.toLocaleString("en-US")} generation${run.generations === 1 ? "" : "s"} · `, make("code", {}, run.path));
    document.title = `${run.name} · neuroevo inspect`;
    byId("pulse").hidden = !run.goes_on;
    for (const button of byId("choose").querySelectorAll("button")) button.disabled = !run.generations;
    byId("generation").max = Math.max(run.generations - 1, 0);
    showProblem([run.problem, run.why_not].filter(Boolean).join("\n"));
  }

  const SIDES = { a: "left", b: "right" };
  const SETTLED = 300; // ms without a change before the address is updated, since browsers limit how often it may be
  let remembering = null;

  // Keep the view in the address, so that it can be bookmarked and shared; the last generation is not named, so that such a
  // view follows a run in training.
  function remember() {
    clearTimeout(remembering);
    remembering = setTimeout(() => {
      const { run, generation } = state;
      const view = new URLSearchParams(run ? { run } : {});
      if (generation < inspector.run().generations - 1) view.set("generation", generation);
      for (const [slot, side] of Object.entries(SIDES)) {
        const member = inspector.onStage[slot];
        if (member) view.set(side, `${member.generation}.${member.index}`);
      }
      history.replaceState(null, "", `#${view}`);
    }, SETTLED);
  }

  // Return the view that the address names: run, generation, and the members on both sides; undefined for missing or invalid parts.
  function viewOfAddress() {
    const view = new URLSearchParams(location.hash.slice(1));
    const [number, member] = [/^\d+$/, /^(\d+)\.(\d+)$/];
    const valid = (name) => (number.test(view.get(name)) ? Number(view.get(name)) : undefined);
    const members = Object.entries(SIDES).map(([slot, side]) => [slot, (view.get(side) || "").match(member)]);
    return { run: valid("run"), generation: valid("generation"), members: members.filter(([, found]) => found).map(([slot, found]) => [slot, Number(found[1]), Number(found[2])]) };
  }

  async function showRun(number, { generation, members = [] } = {}) {
    stop();
    state.run = number;
    head();
    inspector.clearStage();
    byId("ancestors").replaceChildren();
    inspector.setAncestors();
    const last = Math.max(inspector.run().generations - 1, 0);
    state.generation = Math.min(generation ?? last, last);
    byId("generation").value = state.generation;
    byId("generation-number").textContent = state.generation;
    await Promise.all([inspector.refreshCurves(), inspector.refreshCloud(), inspector.refreshAbout()]);
    document.documentElement.dataset.ready = "page";
    for (const member of members) inspector.play(...member);
    if (!members.length) playElite().catch(() => {}); // the cloud shows why its generation cannot be read
    await inspector.refreshWay();
    await Promise.all([inspector.refreshFamily(), inspector.refreshTakeover()]);
    document.documentElement.dataset.ready = "all";
  }

  // Load new generations; the slider follows if it was at the last generation.
  async function follow() {
    let overview;
    try {
      overview = await get("overview");
    } catch (error) {
      showProblem(error.message);
      return;
    }
    const before = state.overview;
    const changed = overview.runs.some((run, place) => run.rows !== before.runs[place].rows || run.generations !== before.runs[place].generations);
    state.overview = overview;
    head();
    if (!changed) return;
    const atEnd = state.generation >= before.runs[state.run].generations - 1;
    inspector.setColumns();
    inspector.setAncestors();
    await Promise.all([inspector.refreshCurves(), inspector.refreshAbout(), inspector.refreshTrials()]);
    const had = before.runs[state.run].generations;
    if (had < BEGINNING || inspector.run().generations < had) await inspector.refreshCloud(); // axes were refitted, or generations deleted
    if (atEnd) inspector.setGeneration(inspector.run().generations - 1);
    await inspector.refreshWay();
    await Promise.all([byId("family-of").value === "last" ? inspector.refreshFamily() : null, inspector.refreshTakeover()]);
  }

  // Play the elite of the last generation, or its fittest member; of an exported page, a member whose video is in it.
  async function playElite() {
    const { generations, why_not: disabled } = inspector.run();
    if (!generations || disabled) return;
    const { run, overview } = state;
    const [exported] = inspector.exported ? (overview.exported.played[run] || []).slice(-1) : [];
    if (inspector.exported && !exported) return;
    const last = generations - 1;
    const member = exported || (await inspector.elite(last)) || (await inspector.fittest(last));
    if (run === state.run && !inspector.onStage.a) inspector.play("a", ...member);
  }

  function stop() {
    clearInterval(playing);
    playing = null;
    byId("go").textContent = "▶";
  }

  byId("go").addEventListener("click", () => {
    if (playing) return stop();
    if (state.generation >= inspector.run().generations - 1) inspector.setGeneration(0);
    byId("go").textContent = "❚❚";
    playing = setInterval(() => {
      if (state.generation >= inspector.run().generations - 1) return stop();
      inspector.setGeneration(state.generation + 1);
    }, FRAME);
  });
  byId("generation").addEventListener("input", (event) => {
    stop();
    inspector.setGeneration(Number(event.target.value));
  });
  byId("run").addEventListener("change", (event) => showRun(Number(event.target.value)));
  for (const event of ["generation", "played"]) inspector.on(event, remember);
  addEventListener("hashchange", () => location.reload());

  (async () => {
    try {
      state.overview = await get("overview");
    } catch (error) {
      showProblem(error.message);
      return;
    }
    inspector.setColumns();
    inspector.clearStage();
    for (const id of ["curves", "cloud", "family"]) await inspector.blank(id, "");
    inspector.say("ready");
    const view = viewOfAddress();
    await Promise.all([showRun(view.run < state.overview.runs.length ? view.run : 0, view), inspector.refreshTrials()]);
    if (inspector.exported) return;
    for (;;) {
      await new Promise((resolve) => setTimeout(resolve, POLL));
      await follow();
    }
  })();
}
