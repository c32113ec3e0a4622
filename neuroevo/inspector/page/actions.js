"use strict";
// What a member did, as a roll: a row for each action, or for each number of an action; time goes to the right.

{
  const { array } = inspector;
  const ROWS = 24; // more are not told apart

  // Shares of the actions that were taken, the most frequent first: [action, share].
  inspector.shares = ({ values, count }) => {
    const taken = array(values);
    const counts = new Array(count).fill(0);
    for (const action of taken) counts[action]++;
    return counts.map((number, action) => [action, number / Math.max(taken.length, 1)]).sort((a, b) => b[1] - a[1]);
  };

  // Draws the roll, with a line at a share of the time in [0, 1].
  inspector.drawRoll = (canvas, actions, at) => {
    const rows = Math.min(actions.count, ROWS);
    const values = array(actions.values);
    const steps = actions.continuous ? values.length / actions.count : values.length;
    const ratio = devicePixelRatio || 1;
    const [width, height] = [canvas.clientWidth * ratio, canvas.clientHeight * ratio].map(Math.round);
    if (!width || !height) return;
    [canvas.width, canvas.height] = [width, height];
    const pen = canvas.getContext("2d");
    const tall = height / rows;
    pen.fillStyle = inspector.css("--grid");
    for (let row = 0; row < rows; row++) pen.fillRect(0, Math.round(row * tall), width, Math.max(Math.round(tall) - 1, 1));
    const wide = Math.max(width / steps, 1);
    const [accent, second] = [inspector.css("--accent"), inspector.css("--second")];
    for (let step = 0; step < steps; step++) {
      const x = (step * width) / steps;
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
    pen.fillRect(Math.min(at, 1) * (width - ratio), 0, Math.max(Math.round(1.5 * ratio), 1), height);
  };
}
