"use strict";
// The cloud: a dot for each member of the slider's generation, by behavior or fitness, or the cells of a grid.

{
  const { byId, get, array } = inspector;
  const COLORED = 7; // parents with a separate color
  const CLASSES = 16; // color classes
  const KEPT = 60; // cached generations
  let cloud = null; // the run's axes, maze, ranges
  let [way, archive] = [null, null];
  let cells = null; // the run's cells, loaded on demand
  let now = null; // the displayed generation
  const cache = new Map();
  const paths = { a: null, b: null }; // played members: their dots and paths

  async function generation(number) {
    const name = `generation/${inspector.state.run}/${number}`;
    if (!cache.has(name)) {
      const found = await get(name);
      for (const each of ["x", "y", "fitness", "steps", "parents", "novelty"]) if (found[each]) found[each] = array(found[each]);
      if (found.parents) found.families = byParent(found.parents);
      found.facts = facts(found);
      cache.set(name, found);
      if (cache.size > KEPT) cache.delete(cache.keys().next().value);
    }
    return cache.get(name);
  }

  // Rank each member's parent by number of offspring, from 1; 0 for other parents. Also return the parents.
  function byParent(parents) {
    const counts = new Map();
    const keys = [];
    for (let place = 0; place < parents.length; place += 2) {
      const key = `${parents[place]}:${parents[place + 1]}`;
      keys.push(key);
      counts.set(key, (counts.get(key) || 0) + 1);
    }
    const known = [...counts].filter(([key]) => !key.startsWith("-1")).sort((a, b) => b[1] - a[1]);
    const ranks = new Map(known.slice(0, COLORED).map(([key], place) => [key, place + 1]));
    return { values: keys.map((key) => ranks.get(key) || 0), parents: known, most: known[0] };
  }

  const asCells = () => cells !== null && byId("cells").checked;

  // Return the quantity that colors dots or cells, with its lowest and highest value (except for parents).
  function scaleOfColors() {
    const by = byId("color").value;
    if (by === "parent") return { by };
    if (by === "generation") return { by, low: 0, high: inspector.run().generations - 1 };
    const [low, high] = by === "fitness" ? cloud.fitness : inspector.extent((asCells() ? cells : now)[by]);
    return { by, low, high };
  }

  // Return the color class of each member or cell, and the colors of the classes.
  function colors() {
    const { by, low, high } = scaleOfColors();
    if (by === "parent") return { classes: now.families.values, palette: [inspector.css("--faint"), ...inspector.palette()] };
    const classOf = (value) => (Number.isNaN(value) ? 0 : 1 + Math.min(Math.max(Math.floor(((value - low) / (high - low || 1)) * CLASSES), 0), CLASSES - 1));
    const scale = inspector.scale();
    const palette = [inspector.css("--faint"), ...Array.from({ length: CLASSES }, (_, place) => inspector.between(scale, place / (CLASSES - 1)))];
    const values = asCells() ? Array.from(cells.champions, (place) => (place < 0 ? NaN : cells[by][place])) : now[by];
    return { classes: Uint8Array.from(values, classOf), palette };
  }

  // Return an empty trace that displays the color bar.
  function colorBar() {
    const { by, low, high } = scaleOfColors();
    if (by === "parent") return [];
    const colorbar = { thickness: 8, outlinewidth: 0, len: 0.9, title: { text: by, side: "right", font: { size: 11 } }, tickfont: { size: 10, color: inspector.css("--quiet") } };
    const marker = { color: [low], cmin: low, cmax: inspector.wide(low, high) ? high : low + 1, colorscale: inspector.scale(), showscale: true, colorbar };
    return [{ x: [null], y: [null], type: "scatter", mode: "markers", hoverinfo: "skip", showlegend: false, marker }];
  }

  function shapes() {
    if (!cloud.maze) return [];
    const wall = (each) => ({ type: "line", x0: each[0], y0: each[1], x1: each[2], y1: each[3], line: { color: inspector.css("--text"), width: 2 } });
    const disc = ([x, y], size, color) => ({ type: "circle", x0: x - size, y0: y - size, x1: x + size, y1: y + size, line: { color, width: 2 }, fillcolor: inspector.faint(color, 0.15) });
    const { start, goal, walls } = cloud.maze;
    return [...walls.map(wall), ...(goal ? [disc(goal, 5, inspector.css("--second"))] : []), ...(start ? [disc(start, 3, inspector.css("--quiet"))] : [])];
  }

  // Labels of the start and goal of a maze.
  function labels() {
    if (!cloud.maze) return [];
    const label = (place, text) => ({ x: place[0], y: place[1], text, showarrow: false, yshift: 18, font: { size: 11, color: inspector.css("--quiet") } });
    return ["start", "goal"].filter((name) => cloud.maze[name]).map((name) => label(cloud.maze[name], name));
  }

  const sizeOfDots = () => (now.size > 4000 ? 4 : now.size > 800 ? 5 : 7);

  function showDots() {
    offerColors();
    if (asCells()) cells.advance(now.generation);
    byId("generation-facts").textContent = asCells() ? cells.facts() : now.facts;
    const { classes, palette } = colors();
    if (asCells()) inspector.showCells(cells, classes, palette);
    else inspector.showDots(now.x, now.y, classes, palette, sizeOfDots());
  }

  // Return the traces around the dots.
  function traces() {
    const line = (x, y, color, name, width = 1.6) => ({ x, y, type: "scatter", mode: "lines", hoverinfo: "skip", showlegend: false, name, line: { color, width } });
    const found = [];
    if (archive && byId("archive").checked) {
      const count = archive.sizes.length > now.generation ? archive.sizes[now.generation] : archive.x.length;
      const mark = { size: 5, symbol: "cross-thin", line: { width: 1, color: inspector.css("--quiet") } };
      found.push({ x: archive.x.slice(0, count), y: archive.y.slice(0, count), type: "scattergl", mode: "markers", hoverinfo: "skip", showlegend: false, marker: { ...mark, color: inspector.css("--quiet") } });
    }
    found.push(...colorBar());
    if (way && way.front) found.push(inspector.frontTrace(way.front, now.generation));
    if (way && byId("way").checked) {
      const ways = [way.mean.x, way.mean.y].map((each) => each.slice(0, now.generation + 1));
      found.push(line(...ways, inspector.css("--text"), "path of the mean"));
      const here = { size: 9, color: inspector.css("--text"), symbol: "diamond" };
      found.push({ x: [way.mean.x[now.generation]], y: [way.mean.y[now.generation]], type: "scatter", mode: "markers", hoverinfo: "skip", showlegend: false, marker: here });
    }
    for (const [slot, name] of [["a", "--accent"], ["b", "--second"]]) {
      const at = paths[slot];
      if (!at || at.run !== inspector.state.run) continue;
      const color = inspector.css(name);
      const mark = (x, y, marker) => found.push({ x: [x], y: [y], type: "scatter", mode: "markers", hoverinfo: "skip", showlegend: false, marker });
      const here = at.generation === now.generation;
      if (at.path && ["position", "measures"].includes(cloud.kind)) {
        found.push(line(at.path.x, at.path.y, color, "path of the member", 2));
        if (!here) mark(at.path.x.at(-1), at.path.y.at(-1), { size: 9, symbol: "x", color });
      }
      if (here) mark(now.x[at.index], now.y[at.index], { size: sizeOfDots() + 8, color: "rgba(0,0,0,0)", line: { color, width: 2.5 } });
    }
    return found;
  }

  // Return the full ranges of both axes.
  function whole() {
    const { low, high } = asCells() ? cells : cloud;
    const range = (axis) => [low[axis], high[axis]];
    const [x, y] = cloud.kind === "position" && cloud.maze ? bounds(cloud.maze.walls) : [range(0), range(1)];
    return [x, cloud.maze ? [...y].reverse() : y]; // the y axis of mazes points down
  }

  async function redraw() {
    if (!cloud || !now) return;
    offerColors();
    const flat = cloud.kind === "position";
    const [across, up] = whole();
    const layout = inspector.layout(cloud.titles[0], cloud.titles[1], {
      xaxis: { type: "linear", automargin: false, range: across, ...(flat ? { constrain: "domain" } : {}) },
      yaxis: { type: "linear", automargin: false, range: up, ...(flat ? { scaleanchor: "x", constrain: "domain" } : {}) },
      shapes: shapes(),
      annotations: labels(),
      uirevision: `cloud ${inspector.state.run}`,
      margin: { l: 56, r: 8, t: 30, b: 40 }, // the top margin has room for buttons
    });
    await inspector.draw("cloud", traces(), layout);
    showDots();
  }

  // Dots are redrawn at every step of the slider, Plotly's traces only when the slider rests.
  const SOON = 60; // ms
  let rest = null;
  function move() {
    showDots();
    clearTimeout(rest);
    rest = setTimeout(redraw, SOON);
  }

  function bounds(walls) {
    const x = walls.flatMap((each) => [each[0], each[2]]);
    const y = walls.flatMap((each) => [each[1], each[3]]);
    return [x, y].map((all) => [Math.min(...all) - 5, Math.max(...all) + 5]);
  }

  function facts({ size, fitness, families }) {
    const sorted = fitness.toSorted();
    const range = `${inspector.number(sorted[0])} to ${inspector.number(sorted[size - 1])}`;
    const parts = [`${size.toLocaleString("en-US")} members`, `fitness ${range}, median ${inspector.number(sorted[size >> 1])}`];
    if (families && families.most) {
      parts.push(`${families.parents.length} parents, one with ${Math.round((100 * families.most[1]) / size)}% of the offspring`);
    }
    return parts.join(" · ");
  }

  function offerColors() {
    const known = (name) => (name === "parent" ? now.families && !now.center : (asCells() ? cells : now)[name]);
    const names = (asCells() ? ["fitness", "generation", "novelty"] : ["fitness", "novelty", "steps", "parent"]).filter(known);
    const select = byId("color");
    if (names.join() === Array.from(select.options, (option) => option.value).join()) return;
    inspector.options(select, names.map((name) => [name, name === "generation" ? "age (generation)" : name]), names.includes(select.value) ? select.value : "fitness");
  }

  const drawGeneration = inspector.latest(async () => {
    const number = inspector.state.generation;
    try {
      now = await generation(number);
    } catch (error) {
      now = null;
      inspector.showDots(null);
      byId("generation-facts").textContent = "";
      await inspector.blank("cloud", inspector.whyNot(error));
      return;
    }
    describe();
    byId("member").max = now.size - 1;
    byId("elite").hidden = !now.elite; // the elite of some algorithms is a center, not a member
    move();
    inspector.say("drawn");
    const next = number + 1; // prefetch
    if (next < inspector.run().generations) generation(next).catch(() => {});
  });

  inspector.members = () => now;
  inspector.isMaze = () => Boolean(cloud && cloud.maze);
  // Return the generation and index of a generation's fittest member, and of its elite, or undefined if that is no member.
  inspector.fittest = async (number) => {
    const { fitness } = await generation(number);
    return [number, fitness.indexOf(fitness.reduce((a, b) => (b > a ? b : a)))];
  };
  inspector.elite = async (number) => (await generation(number)).elite;

  const TITLES = { cost: "Fitness against the cost of networks", position: "Where episodes ended", track: "Where episodes ended", measures: "Behavior of episodes", components: "Behavior of episodes", steps: "Fitness against steps", index: "Fitness of the members" };

  inspector.refreshCloud = async () => {
    cache.clear();
    const { run } = inspector.state;
    way = archive = cells = now = null;
    try {
      cloud = await get(`cloud/${run}`);
    } catch (error) {
      cloud = null;
      inspector.showDots(null);
      await inspector.blank("cloud", inspector.whyNot(error));
      return;
    }
    byId("cloud-title").textContent = TITLES[cloud.kind];
    byId("archive-choice").hidden = !cloud.archive;
    byId("cells-choice").hidden = !cloud.cells;
    byId("way-choice").hidden = cloud.kind === "index";
    await drawGeneration();
    await redraw();
    if (now) byId("way").checked = now.center; // the mean is informative only if all members descend from a center
  };

  // Cells require reading all members, so they are only loaded when displayed.
  async function loadCells() {
    const { run } = inspector.state;
    if (!cloud || !cloud.cells || !byId("cells").checked) return;
    const found = await inspector.cellsOf(run);
    if (run === inspector.state.run) cells = found;
  }

  // Load the slower data after the page is displayed.
  inspector.refreshWay = async () => {
    const { run } = inspector.state;
    const decoded = (each) => ({ x: array(each.x), y: array(each.y) });
    const front = (each) => each && { ...decoded(each), generations: array(each.generations) };
    const asked = [get(`way/${run}`).then((found) => (way = { mean: decoded(found.mean), best: decoded(found.best), front: front(found.front) }))];
    if (cloud && cloud.archive) asked.push(get(`archive/${run}`).then((found) => (archive = { ...decoded(found), sizes: array(found.sizes) })));
    asked.push(loadCells());
    await Promise.allSettled(asked); // missing data is not drawn
    await redraw();
  };

  // Describe a member or cell in a tooltip at a position of the plot.
  function describe(index, at) {
    const tip = byId("hovered");
    tip.hidden = index === undefined;
    if (tip.hidden) return;
    tip.textContent = asCells() ? cells.champion(index).text : description(index);
    const plot = byId("cloud");
    const left = plot.offsetLeft + at.left + 8;
    tip.style.left = `${left + tip.offsetWidth > plot.offsetLeft + plot.offsetWidth ? Math.max(left - tip.offsetWidth - 32, 0) : left}px`;
    tip.style.top = `${Math.max(plot.offsetTop + at.top - tip.offsetHeight - 4, 0)}px`;
  }

  function description(index) {
    const parts = [`member ${index} of generation ${now.generation}: fitness ${inspector.number(now.fitness[index])}`];
    if (now.steps) parts.push(`${inspector.number(now.steps[index])} steps`);
    if (now.novelty) parts.push(`novelty ${inspector.number(now.novelty[index])}`);
    if (now.parents) {
      const [generation, parent] = now.parents.slice(2 * index, 2 * index + 2);
      parts.push(generation < 0 ? "no parent in the run" : `offspring of member ${parent} of generation ${generation}`);
    }
    return parts.join(" · ");
  }

  inspector.on("whole", () => {
    if (!cloud) return;
    const [across, up] = whole();
    Plotly.relayout(byId("cloud"), { "xaxis.range": across, "yaxis.range": up });
  });
  inspector.on("pointed", describe);
  inspector.on("picked", (index, event) => {
    const picked = asCells() ? cells.champion(index) : { generation: now.generation, index };
    inspector.play(inspector.slotFor(event), picked.generation, picked.index);
  });
  inspector.on("generation", drawGeneration);
  inspector.on("theme", redraw);
  inspector.on("played", (slot, played) => {
    paths[slot] = played;
    redraw();
  });
  byId("cells").addEventListener("change", async () => {
    try {
      if (!cells) await loadCells();
      describe();
    } catch (error) {
      byId("cells").checked = false;
      byId("generation-facts").textContent = inspector.whyNot(error);
    }
    await redraw();
  });
  for (const id of ["color", "way", "archive"]) byId(id).addEventListener("change", redraw);
}
