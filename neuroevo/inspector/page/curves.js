"use strict";
// Learning curves: populations and elites of one run, or a column of several runs with bands. A click selects a generation.

{
  const { byId, get, array } = inspector;
  let shown = null; // the displayed payload and its column

  const LONGEST = 60; // characters of a label
  const MOST_NAMES = 8; // runs in a legend; more runs are colored by their last value and named on hover
  const shortened = (label) => (label.length > LONGEST ? `${label.slice(0, LONGEST)}…` : label);
  const chosenColumn = () => byId("column").value;
  const chosenAxis = () => byId("axis").value;
  // A generation's value starts at its end; against generations, a step is centered at the generation's number.
  const shape = () => (chosenAxis() === "generations" ? "hvh" : "hv");
  const along = (x, axis) => (axis === "generations" ? array(x).map((finished) => finished - 1) : array(x));
  const step = (x, y, more) => ({ x, y, type: "scatter", mode: x.length < 3 ? "lines+markers" : "lines", line: { shape: shape(), width: 1.8, ...more.line }, ...more.trace });

  function alone(payload, axis) {
    const colors = inspector.palette();
    const of = (name) => ({ x: along(payload[axis][name].x, axis), y: array(payload[axis][name].y) });
    const traces = [];
    const low = of("fitness_min");
    const high = of("fitness_max");
    const band = { hoverinfo: "skip", showlegend: false, line: { width: 0, shape: shape() }, type: "scatter", mode: "lines" };
    traces.push({ ...band, ...low });
    traces.push({ ...band, ...high, fill: "tonexty", fillcolor: inspector.faint(inspector.css("--faint"), 0.22), showlegend: true, name: "population, minimum to maximum" });
    const mean = of("fitness_mean");
    traces.push(step(mean.x, mean.y, { trace: { name: "mean of the population" }, line: { color: inspector.css("--quiet") } }));
    const validation = of("validation_mean");
    const test = of("test_mean");
    const error = of("test_standard_error");
    if (test.x.length) {
      if (error.x.length === test.x.length) {
        const sides = (sign) => test.y.map((value, place) => value + sign * error.y[place]);
        traces.push({ ...band, x: test.x, y: sides(-1) });
        traces.push({ ...band, x: test.x, y: sides(1), fill: "tonexty", fillcolor: inspector.faint(colors[1], 0.2) });
      }
      traces.push(step(test.x, test.y, { trace: { name: "elite, test ± standard error" }, line: { color: colors[1], width: 4 } }));
    }
    // Narrower and on top, so that both lines are visible where they coincide.
    if (validation.x.length) traces.push(step(validation.x, validation.y, { trace: { name: "elite, validation" }, line: { color: colors[0], width: 1.6 } }));
    return traces;
  }

  const crowded = (payload) => payload.groups.length > MOST_NAMES && payload.groups.every((group) => group.runs.length === 1);

  // Color many runs by their last value.
  function crowd(payload, axis) {
    const lines = payload.groups.flatMap((group) => Object.entries(group[axis].lines)).map(([run, line]) => [run, along(line.x, axis), array(line.y)]);
    const last = lines.map(([, , y]) => y[y.length - 1]).filter(Number.isFinite);
    const [low, high] = [Math.min(...last), Math.max(...last)];
    const share = (value) => (high > low && Number.isFinite(value) ? (value - low) / (high - low) : 0);
    return lines.map(([run, x, y]) =>
      step(x, y, {
        trace: { name: inspector.state.overview.runs[run].name, showlegend: false },
        line: { color: inspector.between(inspector.scale(), share(y[y.length - 1])), width: 1.4 },
      }),
    );
  }

  function together(payload, axis) {
    const colors = inspector.palette();
    const traces = [];
    payload.groups.forEach((group, place) => {
      const color = colors[place % colors.length];
      const dash = ["solid", "dash", "dot"][Math.floor(place / colors.length) % 3];
      const { lines, band } = group[axis];
      for (const [run, line] of Object.entries(lines)) {
        const single = !band;
        traces.push(
          step(along(line.x, axis), array(line.y), {
            trace: { name: inspector.state.overview.runs[run].name, showlegend: single, opacity: single ? 1 : 0.45, legendgroup: group.label },
            line: { color, dash, width: single ? 1.8 : 0.8 },
          }),
        );
      }
      if (!band) return;
      const x = along(band.x, axis);
      const [mean, low, high] = ["mean", "low", "high"].map((name) => array(band[name]));
      const edge = { x, type: "scatter", mode: "lines", hoverinfo: "skip", showlegend: false, line: { width: 0, shape: shape() }, legendgroup: group.label };
      traces.push({ ...edge, y: low }, { ...edge, y: high, fill: "tonexty", fillcolor: inspector.faint(color, 0.18) });
      traces.push(step(x, mean, { trace: { name: `${shortened(group.label)} (n=${group.runs.length})`, legendgroup: group.label }, line: { color, dash, width: 2 } }));
    });
    return traces;
  }

  // Return the position of the slider's generation on the x axis, from the rows for axes other than generations.
  function mark(payload, axis) {
    const { generation, run } = inspector.state;
    if (axis === "generations") return generation;
    const line = payload.groups ? payload.groups.map((group) => group[axis].lines[run]).find(Boolean) : payload[axis].fitness_mean;
    const x = line && array(line.x);
    return x && x.length === inspector.run().rows ? x[generation] : undefined;
  }

  const marker = (x) =>
    x === undefined ? [] : [{ type: "line", x0: x, x1: x, yref: "paper", y0: 0, y1: 1, line: { color: inspector.css("--accent"), width: 1, dash: "dot" } }];

  function redraw() {
    if (!shown) return;
    const axis = chosenAxis();
    const { payload, column } = shown;
    const many = column !== "alone" && crowded(payload);
    const traces = (column === "alone" ? alone : many ? crowd : together)(payload, axis);
    byId("curves-hint").textContent = many ? `${payload.groups.length} runs, colored by the last value` : "";
    const whole = axis === "generations" ? inspector.countAxis(inspector.run().generations) : {};
    const layout = inspector.layout(axis === "generations" ? "generation" : payload.axes[axis], column === "alone" ? "return" : column.replaceAll("_", " "), {
      xaxis: { rangemode: "tozero", ...whole },
      hovermode: many ? "closest" : "x unified",
      uirevision: `${column} ${axis} ${inspector.state.run}`,
      shapes: marker(mark(payload, axis)),
    });
    return inspector.draw("curves", traces, layout);
  }

  inspector.refreshCurves = inspector.latest(async () => {
    const column = chosenColumn();
    try {
      shown = { column, payload: await get(column === "alone" ? `alone/${inspector.state.run}` : `curves/${column}`) };
      const axes = Object.entries(shown.payload.axes);
      if (!byId("axis").options.length) inspector.options(byId("axis"), axes, "generations");
      await redraw();
    } catch (error) {
      shown = null;
      await inspector.blank("curves", inspector.whyNot(error));
    }
  });

  inspector.setColumns = () => {
    const { columns, runs } = inspector.state.overview;
    const several = runs.length > 1;
    const before = chosenColumn();
    const entries = [["alone", several ? "this run" : "fitness"], ...columns.map((name) => [name, name.replaceAll("_", " ")])];
    inspector.options(byId("column"), entries, before || (several ? inspector.state.overview.column : "alone"));
  };

  byId("column").addEventListener("change", () => inspector.refreshCurves());
  byId("axis").addEventListener("change", redraw);
  inspector.on("theme", redraw);
  inspector.on("generation", () => {
    if (shown && byId("curves").data) Plotly.relayout(byId("curves"), { shapes: marker(mark(shown.payload, chosenAxis())) });
  });
  inspector.on("ready", () => {
    byId("curves").on("plotly_click", (event) => {
      if (chosenAxis() === "generations") inspector.setGeneration(Math.round(event.points[0].x));
    });
  });
}
