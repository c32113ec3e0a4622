"use strict";
// Ancestry: the family tree of a member, and the shares of a generation's descendants in later populations.

{
  const { byId, get, array, number } = inspector;
  const NARROW = 500; // pixels; the legend of a narrower plot is above it
  let tree = null;
  let shares = null;

  async function wanted() {
    const of = byId("family-of").value;
    const { run, generation, overview } = inspector.state;
    if (inspector.exported) {
      const known = overview.exported.families[run] || [];
      if (!known.length) throw new Error("this export has no family trees");
      if (of === "last") return known.at(-1);
      const at = of === "a" ? inspector.onStage.a : null;
      const exact = at && known.find(([g, i]) => g === at.generation && i === at.index);
      return exact || known.reduce((best, each) => (Math.abs(each[0] - generation) < Math.abs(best[0] - generation) ? each : best));
    }
    if (of === "a") {
      if (!inspector.onStage.a) throw new Error("no member has been played yet");
      return [inspector.onStage.a.generation, inspector.onStage.a.index];
    }
    const last = of === "last" ? Math.max(Math.min(inspector.run().generations, inspector.run().kept ?? Infinity) - 1, 0) : generation;
    return inspector.fittest(last);
  }

  function drawTree() {
    if (!tree) return;
    const { line, relatives } = tree;
    const [parents, children] = [array(relatives.parents), array(relatives.children)];
    const [x, y] = [[], []];
    for (let place = 0; place < parents.length; place += 2) {
      x.push(parents[place], children[place], null);
      y.push(parents[place + 1], children[place + 1], null);
    }
    const quiet = { type: "scattergl", mode: "lines", x, y, hoverinfo: "skip", name: "other offspring", line: { color: inspector.faint(inspector.css("--faint"), 0.55), width: 1 } };
    const ends = { type: "scattergl", mode: "markers", x: x.filter((_, place) => place % 3 === 1), y: y.filter((_, place) => place % 3 === 1), hoverinfo: "skip", showlegend: false, marker: { size: 3, color: inspector.css("--faint") } };
    const own = {
      type: "scatter",
      mode: "lines+markers",
      x: line.map((each) => each.generation),
      y: line.map((each) => each.fitness),
      name: "lineage of this member",
      line: { color: inspector.css("--accent"), width: 2 },
      marker: { size: line.length > 60 ? 5 : 8, color: inspector.css("--accent") },
      text: line.map((each) => `member ${each.index} of generation ${each.generation}<br>fitness ${number(each.fitness)}<br>${each.offspring} offspring in ${each.generations} generation${each.generations === 1 ? "" : "s"}`),
      hovertemplate: "%{text}<extra></extra>",
    };
    const [low, high] = inspector.extent([...ends.y, ...own.y]);
    const yaxis = inspector.wide(low, high) ? {} : { range: [low - 1, high + 1] };
    return inspector.draw("family", [quiet, ends, own], inspector.layout("generation", "fitness", { xaxis: inspector.countAxis(line[0].generation), yaxis, uirevision: `family ${inspector.state.run} ${line[0].generation} ${line[0].index}` }));
  }

  function treeFacts() {
    const { line, all } = tree;
    const [member, first] = [line[0], line.at(-1)];
    if (line.length === 1) return `Member ${member.index} of generation ${member.generation} has no parent in the run${member.scale ? ": it is an offspring of a center" : ""}.`;
    const busiest = line.slice(1).reduce((best, each) => (each.offspring > best.offspring ? each : best));
    return (
      `Member ${member.index} of generation ${member.generation} descends from member ${first.index} of generation ${first.generation} by ${line.length - 1} mutations. ` +
      `Its ancestors had ${number(all)} other offspring; the one in generation ${busiest.generation} had the most, ${number(busiest.offspring)} in ${busiest.generations} generation${busiest.generations === 1 ? "" : "s"}.`
    );
  }

  inspector.refreshFamily = inspector.latest(async () => {
    try {
      const [generation, index] = await wanted();
      tree = await get(`family/${inspector.state.run}/${generation}/${index}`);
      byId("family-facts").textContent = treeFacts();
      if (tree.line.length > 1) return await drawTree();
      tree = null;
      await inspector.blank("family", "No family tree.");
    } catch (error) {
      tree = null;
      byId("family-facts").textContent = "";
      await inspector.blank("family", inspector.whyNot(error));
    }
  });

  function drawShares() {
    if (!shares) return;
    const x = array(shares.generations);
    const colors = inspector.palette();
    const area = (y, name, color) => ({ x, y, name, type: "scatter", mode: "lines", stackgroup: "all", line: { width: 0.5, color }, fillcolor: inspector.faint(color, 0.75), hovertemplate: "%{y:.0%}" });
    const traces = shares.ancestors.map((each, place) => area(array(each.shares), `member ${each.index}`, colors[place % colors.length]));
    traces.push(area(array(shares.others), `other members of generation ${shares.begin}`, inspector.css("--faint")));
    const older = array(shares.older);
    if (older.some((value) => value > 1e-5)) traces.push(area(older, "other ancestry", inspector.css("--grid")));
    const layout = inspector.layout("generation", "share of the population", {
      xaxis: inspector.countAxis(x.length),
      margin: { l: 56, r: 8, t: 8, b: 40 },
      yaxis: { range: [0, 1], tickformat: ".0%" },
      hovermode: "x unified",
      ...(byId("takeover").clientWidth < NARROW ? {} : { legend: { orientation: "v", x: 1.02, y: 1, yanchor: "top", font: { size: 11 }, bgcolor: "rgba(0,0,0,0)" } }),
      uirevision: `takeover ${inspector.state.run} ${shares.begin}`,
    });
    return inspector.draw("takeover", traces, layout);
  }

  function sharesFacts() {
    const [generations, left] = [array(shares.generations), array(shares.left)];
    if (generations.length < 2) return "No later generation yet.";
    if (!shares.ancestors.length) return "No later member descends from this generation.";
    const one = left.indexOf(1);
    const begin = `Of generation ${shares.begin}'s ${number(left[0])} members`;
    if (one >= 0) return `${begin}, only one has descendants from generation ${generations[one]} on.`;
    return `${begin}, ${number(left.at(-1))} have descendants in generation ${generations.at(-1)}.`;
  }

  inspector.refreshTakeover = inspector.latest(async () => {
    try {
      shares = await get(`ancestors/${inspector.state.run}/${byId("ancestors").value}`);
      byId("takeover-facts").textContent = sharesFacts();
      if (shares.ancestors.length) return await drawShares();
      shares = null;
      await inspector.blank("takeover", "No descendants.");
    } catch (error) {
      shares = null;
      byId("takeover-facts").textContent = "";
      await inspector.blank("takeover", inspector.whyNot(error));
    }
  });

  inspector.setAncestors = () => {
    const { run, overview } = inspector.state;
    const { generations } = inspector.run();
    const known = inspector.exported ? overview.exported.ancestors[run] : Array.from({ length: Math.min(generations, 12) }, (_, place) => Math.round((place * (generations - 1)) / Math.max(Math.min(generations, 12) - 1, 1)));
    const before = byId("ancestors").value;
    const entries = (known.length ? known : [0]).map((each) => [each, String(each)]);
    if (before && entries.every(([each]) => String(each) !== before)) entries.unshift([before, before]);
    inspector.options(byId("ancestors"), entries, before || 0);
  };

  byId("family-of").addEventListener("change", () => inspector.refreshFamily());
  byId("ancestors").addEventListener("change", () => inspector.refreshTakeover());
  inspector.on("stage", () => byId("family-of").value === "a" && inspector.refreshFamily());
  inspector.on("drawn", () => byId("family-of").value === "now" && inspector.refreshFamily());
  inspector.on("theme", () => {
    inspector.refreshFamily();
    inspector.refreshTakeover();
  });
  inspector.on("ready", () => {
    byId("family").on("plotly_click", (event) => {
      const point = event.points.find((each) => each.curveNumber === 2);
      if (!point) return;
      const { generation, index } = tree.line[point.pointNumber];
      inspector.setGeneration(generation);
      inspector.play(inspector.slotFor(event.event || {}), generation, index);
    });
  });
}
