"use strict";
// Piano roll of a member's actions: a labeled row per discrete action or per number of a continuous action, against time.

{
  const { array } = inspector;
  const ROWS = 24; // more rows would be too thin
  const TALL = 12; // pixels of a row, at least

  // Frequencies of the actions, in descending order: [action, share].
  inspector.shares = ({ values, count }) => {
    const taken = array(values);
    const counts = new Array(count).fill(0);
    for (const action of taken) counts[action]++;
    return counts.map((number, action) => [action, number / Math.max(taken.length, 1)]).sort((a, b) => b[1] - a[1]);
  };

  // Draw the roll with a cursor at the fraction `at` of the time, in [0, 1].
  inspector.drawRoll = (canvas, actions, at) => {
    const rows = Math.min(actions.count, ROWS);
    const values = array(actions.values);
    const steps = actions.continuous ? values.length / actions.count : values.length;
    const ratio = devicePixelRatio || 1;
    canvas.style.height = `${Math.max(84, rows * TALL)}px`;
    const [width, height] = [canvas.clientWidth * ratio, canvas.clientHeight * ratio].map(Math.round);
    if (!width || !height) return;
    [canvas.width, canvas.height] = [width, height];
    const pen = canvas.getContext("2d");
    const tall = height / rows;
    pen.font = `${10 * ratio}px ${getComputedStyle(canvas).fontFamily}`;
    pen.textBaseline = "middle";
    const names = Array.from({ length: rows }, (_, row) => String(actions.names[row] || row));
    const left = Math.round(Math.min(Math.max(...names.map((name) => pen.measureText(name).width)) + 6 * ratio, width * 0.35));
    names.forEach((name, row) => {
      pen.fillStyle = inspector.css("--quiet");
      pen.fillText(name, 0, (row + 0.5) * tall, left - 6 * ratio);
      pen.fillStyle = inspector.css("--grid");
      pen.fillRect(left, Math.round(row * tall), width - left, Math.max(Math.round(tall) - 1, 1));
    });
    const wide = Math.max((width - left) / steps, 1);
    const [accent, second] = [inspector.css("--accent"), inspector.css("--second")];
    for (let step = 0; step < steps; step++) {
      const x = left + (step * (width - left)) / steps;
      if (!actions.continuous) {
        if (values[step] >= rows) continue;
        pen.fillStyle = accent;
        pen.fillRect(x, Math.round(values[step] * tall), wide, Math.max(Math.round(tall) - 1, 1));
        continue;
      }
      for (let row = 0; row < rows; row++) {
        const value = values[step * actions.count + row];
        const most = Math.max(Math.abs(actions.low[row]), Math.abs(actions.high[row])) || 1;
        const strength = Math.min(Math.abs(value) / (Number.isFinite(most) ? most : 1), 1);
        pen.fillStyle = inspector.faint(value < 0 ? second : accent, strength);
        pen.fillRect(x, Math.round(row * tall), wide, Math.max(Math.round(tall) - 1, 1));
      }
    }
    pen.fillStyle = inspector.css("--text");
    pen.fillRect(left + Math.min(at, 1) * (width - left - ratio), 0, Math.max(Math.round(1.5 * ratio), 1), height);
  };
}
