"use strict";
// Grid of a run's behaviors with the champion of each cell, its fittest member up to a generation.

{
  const { get, array } = inspector;

  // Load the grid of a run; call advance() before using it. champions: for each cell an index into generation, index,
  // fitness and novelty, or -1.
  inspector.cellsOf = async (run) => {
    const found = await get(`cells/${run}`);
    for (const each of ["generation", "index", "cell", "fitness", "novelty"]) if (found[each]) found[each] = array(found[each]);
    const champions = new Int32Array(found.shape[0] * found.shape[1]).fill(-1);
    let taken = 0; // members inserted into their cells so far

    function advance(generation) {
      if (taken > 0 && found.generation[taken - 1] > generation) {
        champions.fill(-1);
        taken = 0;
      }
      for (; taken < found.generation.length && found.generation[taken] <= generation; taken++) {
        champions[found.cell[2 * taken] * found.shape[1] + found.cell[2 * taken + 1]] = taken;
      }
    }

    function facts() {
      let [filled, score] = [0, 0];
      for (const place of champions) if (place >= 0) [filled, score] = [filled + 1, score + found.fitness[place]];
      const count = (number) => number.toLocaleString("en-US");
      const share = inspector.number((100 * filled) / champions.length, 3);
      return `${count(filled)} of ${count(champions.length)} cells filled (${share}%) · QD-score ${inspector.number(score)}`;
    }

    // Return generation, index and a description of a cell's champion.
    function champion(cell) {
      const place = champions[cell];
      const [generation, index] = [found.generation[place], found.index[place]];
      const parts = [`champion of the cell: member ${index} of generation ${generation}: fitness ${inspector.number(found.fitness[place])}`];
      if (found.novelty) parts.push(`novelty ${inspector.number(found.novelty[place])}`);
      return { generation, index, text: parts.join(" · ") };
    }

    return { ...found, champions, advance, facts, champion };
  };
}
