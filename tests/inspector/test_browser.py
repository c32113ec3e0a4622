"""The page in the system's Chromium."""

import re
import shutil
import subprocess
import sys
import time

import numpy as np
import pytest
from PIL import Image

from neuroevo.inspector.inspection import Inspection
from neuroevo.inspector.serving import served
from neuroevo.runs.members import MembersReader
from neuroevo.sessions.folder import RunFolder
from tests.inspector.conftest import configured, played, shortened
from tests.runs.test_extreme_fitness import Returns
from tests.support.browser import CHROMIUM, shown_in, started_browser
from tests.support.made_up_run import made_up_run
from tests.support.runs import config, new_run

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium: apt-get install -y chromium"),
]
# Positions of the members' dots.
DRAWN = "inspector.shownDots()"


@pytest.fixture(scope="module")
def browser():
    with started_browser() as browser:
        yield browser


@pytest.fixture
def shown(browser):
    """A browser window; after the test, check that it had no errors and no requests to other hosts."""
    shown = shown_in(browser)
    yield shown
    assert shown.complaints == []
    assert all(host.startswith("127.0.0.1:") or host in ("data", "blob") for host in shown.hosts), shown.hosts
    shown.page.context.close()


@pytest.fixture(scope="module")
def page_of(maze):
    """The address of the maze's page."""
    with Inspection([maze]) as inspection, served(inspection) as address:
        yield address


def text(shown, selector):
    return shown.page.inner_text(selector)


def test_the_page_shows_the_run(shown, maze, page_of):
    """Nothing sticks out of it, and its slider moves the cloud."""
    shown.visit(page_of)
    nothing_sticks_out(shown, 1280, "light")
    assert "ga_ns on hard_maze" in text(shown, "#title") and "6 generations" in text(shown, "#title")
    shown.page.click("#details")
    assert "sigma" in text(shown, "#about")
    shown.page.keyboard.press("Escape")
    assert shown.page.is_hidden("#drawer")
    shown.page.wait_for_selector(".stage[data-slot=a] table")  # the elite
    generation, index = MembersReader(maze).elite(5)
    assert text(shown, ".stage[data-slot=a] h3") == f"Generation {generation}, member {index}"
    assert "30 members" in text(shown, "#generation-facts")
    assert shown.value(f"{DRAWN}.x.length") == 30
    for plot in ("curves", "cloud", "family", "takeover"):
        assert shown.value(f"document.getElementById('{plot}').data.length") > 0
    assert shown.page.is_hidden("#problem")
    last = shown.value(f"{DRAWN}.x")
    shown.page.focus("#generation")
    shown.page.keyboard.press("Home")
    shown.until("document.getElementById('generation-number').textContent === '0'")
    shown.until(f"{DRAWN}.x[0] !== {last[0]}")
    first = MembersReader(maze).read(0)
    assert shown.value(f"{DRAWN}.x") == pytest.approx(first.behaviors[:, 0].tolist())
    shown.page.keyboard.press("ArrowRight")
    shown.until("document.getElementById('generation-number').textContent === '1'")


@pytest.mark.thorough
@pytest.mark.parametrize("returns", [[1.7e308, -1.7e308, 0.5], [0.6, 0.6000000000000001], [5e-324]])
def test_fitness_at_the_ends_of_what_floats_are(shown, tmp_path, returns):
    new_run(tmp_path / "run", Returns(returns))
    with Inspection([tmp_path / "run"]) as inspection, served(inspection) as address:
        shown.visit(address)
        assert "8 members" in text(shown, "#generation-facts")
        for plot in ("curves", "cloud", "family", "takeover"):
            assert shown.value(f"document.getElementById('{plot}').data.length") > 0
        low, high = shown.value("document.getElementById('curves')._fullLayout.yaxis.range")
        assert low < high
        assert shown.page.is_hidden("#problem")


def place_of(shown, index):
    """Return the expected position of a member's dot in the window, by Plotly's axes."""
    return shown.value(
        f"""(() => {{
            const plot = document.getElementById('cloud'), box = plot.getBoundingClientRect(), all = plot._fullLayout;
            const at = (axis, value) => axis._offset + axis.d2p(value);
            return [box.x + at(all.xaxis, {DRAWN}.x[{index}]), box.y + at(all.yaxis, {DRAWN}.y[{index}])];
        }})()"""
    )


def covered(shown, place):
    """Return the alpha of the dots at a pixel of the window, in [0, 255]."""
    script = """([x, y]) => {
        const dots = document.querySelector('#cloud canvas.dots'), box = dots.getBoundingClientRect();
        const [column, row] = [x - box.x, y - box.y].map((each) => Math.floor(each * devicePixelRatio));
        return dots.getContext('2d').getImageData(column, row, 1, 1).data[3];
    }"""
    return shown.page.evaluate(script, list(place))


@pytest.mark.thorough
def test_dots_are_where_the_axes_say(shown, page_of):
    shown.visit(page_of)
    shown.page.locator("#cloud").scroll_into_view_if_needed()
    for _ in range(2):
        places = [place_of(shown, member) for member in range(30)]
        assert all(covered(shown, place) > 150 for place in places)
        assert covered(shown, [places[0][0], max(y for _, y in places) + 12]) == 0
        # zoom out by a factor of two
        shown.value(
            """(() => {
                const plot = document.getElementById('cloud'), changes = {};
                for (const name of ['xaxis', 'yaxis']) {
                    const [from, to] = plot._fullLayout[name].range;
                    changes[`${name}.range`] = [from - (to - from) / 2, to + (to - from) / 2];
                }
                return Plotly.relayout(plot, changes).then(() => null);
            })()"""
        )
        assert places != [place_of(shown, member) for member in range(30)]
    shown.page.mouse.move(*place_of(shown, 4))
    shown.until("document.getElementById('hovered').textContent.startsWith('member ')")
    assert shown.page.is_visible("#cloud .ring")
    shown.page.mouse.move(2, 2)
    shown.page.wait_for_selector("#cloud .ring", state="hidden")


@pytest.mark.thorough
def test_a_picture_of_the_cloud_has_its_dots(shown, page_of, tmp_path):
    shown.visit(page_of)
    shown.page.locator("#cloud").hover()
    with shown.page.expect_download() as download:
        shown.page.click("#cloud .modebar-btn[data-title='Download plot as a PNG']")
    download.value.save_as(tmp_path / "population.png")
    with Image.open(tmp_path / "population.png") as picture:
        colors = {tuple(color) for _, color in picture.convert("RGB").getcolors(2**24)}
    # colors of fitness; the page itself is gray
    assert any(max(color) - min(color) > 60 and color[2] > color[0] for color in colors)


def click_on_member(shown, index, modifiers=()):
    """Click on a member's dot."""
    x, y = place_of(shown, index)
    for modifier in modifiers:
        shown.page.keyboard.down(modifier)
    shown.page.mouse.move(x, y)
    shown.page.mouse.click(x, y)
    for modifier in modifiers:
        shown.page.keyboard.up(modifier)


def watch(shown, slot):
    """Wait until a slot's video is playing."""
    video = f".stage[data-slot={slot}] video"
    shown.page.wait_for_selector(video)
    shown.until(f"document.querySelector('{video}').readyState >= 3")
    shown.until(f"document.querySelector('{video}').currentTime > 0")
    return video


def test_a_click_plays_a_video_that_decodes(shown, page_of, maze):
    shown.visit(page_of)
    shown.page.locator("#cloud").scroll_into_view_if_needed()
    click_on_member(shown, 12)
    shown.page.wait_for_selector(".stage[data-slot=a] table")
    told = text(shown, ".stage[data-slot=a] h3")
    generation, index = (int(word) for word in told.replace(",", "").split() if word.isdigit())
    assert generation == 5
    video = watch(shown, "a")
    colors = shown.value(
        f"""(() => {{
            const video = document.querySelector('{video}'), canvas = document.createElement('canvas');
            [canvas.width, canvas.height] = [video.videoWidth, video.videoHeight];
            const pen = canvas.getContext('2d');
            pen.drawImage(video, 0, 0);
            return new Set(new Uint32Array(pen.getImageData(0, 0, canvas.width, canvas.height).data.buffer)).size;
        }})()"""
    )
    assert colors > 3  # walls, floor, robot
    members = MembersReader(maze).read(5)
    told = text(shown, ".stage[data-slot=a] table")
    assert "as in the run" in told and f"{members.steps[index]}" in told
    assert f"{members.fitness[index]:,.6f}"[:7] in told


@pytest.mark.thorough
def test_dots_stay_where_they_are_whoever_plays(shown, page_of):
    """A second click must hit the dot that it was aimed at."""
    shown.visit(page_of)
    shown.page.locator("#cloud").scroll_into_view_if_needed()
    before = place_of(shown, 12)
    for member, modifiers in ((12, []), (7, ["Shift"])):
        click_on_member(shown, member, modifiers)
    for slot in "ab":
        watch(shown, slot)
    assert place_of(shown, 12) == pytest.approx(before, abs=1)


@pytest.mark.thorough
def test_two_quick_clicks_change_no_axes(shown, page_of):
    """Plotly's double click would fit the axes to its traces, without the dots. A zoomed plot is reset."""
    shown.visit(page_of)
    shown.page.locator("#cloud").scroll_into_view_if_needed()
    ranges = "['xaxis', 'yaxis'].map((name) => document.getElementById('cloud')._fullLayout[name].range.join())"
    whole, place = shown.value(ranges), place_of(shown, 12)
    shown.page.mouse.dblclick(*place)
    watch(shown, "a")
    assert shown.value(ranges) == whole and place_of(shown, 12) == pytest.approx(place, abs=1)
    shown.value("Plotly.relayout('cloud', {'xaxis.range': [0, 50]}).then(() => null)")
    assert shown.value(ranges) != whole
    middle = """['x', 'y'].map((name) => {
        const plot = document.getElementById('cloud'), axis = plot._fullLayout[`${name}axis`];
        return plot.getBoundingClientRect()[name] + axis._offset + axis._length / 2;
    })"""
    shown.page.mouse.dblclick(*shown.value(middle))
    shown.until(f"{ranges}.join() === '{','.join(whole)}'")


def cells_so_far(maze, grid, generation):
    """Find the fittest member of each cell up to a generation by a loop: its generation, index and fitness."""
    low, high = np.array(grid["low"]), np.array(grid["high"])
    champions = {}
    for members in list(MembersReader(maze).each())[: generation + 1]:
        places = ((members.behaviors - low) // ((high - low) / grid["shape"])).astype(int).tolist()
        for index, (place, fitness) in enumerate(zip(places, members.fitness, strict=True)):
            if tuple(place) not in champions or fitness > champions[tuple(place)][2]:
                champions[tuple(place)] = members.generation, index, fitness
    return champions


def place_of_cell(shown, grid, cell):
    """Return the expected position of a cell's center in the window, by Plotly's axes."""
    x, y = (low + (high - low) * (at + 0.5) / count for at, low, high, count in zip(cell, *grid.values(), strict=True))
    return shown.value(
        f"""(() => {{
            const plot = document.getElementById('cloud'), box = plot.getBoundingClientRect(), all = plot._fullLayout;
            const at = (axis, value) => axis._offset + axis.d2p(value);
            return [box.x + at(all.xaxis, {x}), box.y + at(all.yaxis, {y})];
        }})()"""
    )


def test_cells_have_their_champions_up_to_the_slider_s_generation(shown, maze, tmp_path):
    with Inspection([maze]) as inspection, served(inspection) as address:
        answer = inspection.answer("cells/0")
        grid = {name: answer[name] for name in ("low", "high", "shape")}
        shown.visit(address)
        shown.page.locator("#cloud").scroll_into_view_if_needed()
        shown.page.check("#cells")
        shown.until("document.getElementById('generation-facts').textContent.includes('cells filled')")
        new = sorted(set(cells_so_far(maze, grid, 5)) - set(cells_so_far(maze, grid, 1)))[0]
        for generation in (5, 1, 2):  # backward and forward
            shown.value(f"inspector.setGeneration({generation})")
            champions = cells_so_far(maze, grid, generation)
            filled = f"{len(champions)} of 2,500 cells filled"
            shown.until(f"document.getElementById('generation-facts').textContent.startsWith('{filled}')")
            score = f"{sum(fitness for *_, fitness in champions.values()):,.6g}"
            assert score in text(shown, "#generation-facts")
            assert all(covered(shown, place_of_cell(shown, grid, cell)) == 255 for cell in champions)
            assert (covered(shown, place_of_cell(shown, grid, new)) == 255) == (new in champions)
        cell, (owner, index, fitness) = next(each for each in champions.items() if each[1][0] < 2)
        shown.page.mouse.move(*place_of_cell(shown, grid, cell))
        told = f"member {index} of generation {owner}: fitness {fitness:,.6g}"
        shown.until(f"document.getElementById('hovered').textContent.includes('{told}')")
        for slot, modifier in (("a", None), ("b", "Shift")):
            if modifier:
                shown.page.keyboard.down(modifier)
            shown.page.mouse.click(*place_of_cell(shown, grid, cell))
            shown.page.wait_for_selector(f".stage[data-slot={slot}] table")
            title = text(shown, f".stage[data-slot={slot}] h3").replace(",", "")
            assert sorted(int(word) for word in title.split() if word.isdigit()) == sorted((owner, index))
        shown.page.keyboard.up("Shift")
        options = shown.value("Array.from(document.getElementById('color').options, ({ value }) => value)")
        assert options == ["fitness", "generation", "novelty"]
        for by in ("generation", "novelty"):
            shown.page.select_option("#color", by)
            shown.until(
                f"document.getElementById('cloud').data.some((each) => each.marker?.colorbar?.title.text === '{by}')"
            )
        with shown.page.expect_download() as download:
            shown.page.locator("#cloud").hover()
            shown.page.click("#cloud .modebar-btn[data-title='Download plot as a PNG']")
        download.value.save_as(tmp_path / "cells.png")
        with Image.open(tmp_path / "cells.png") as picture:
            colors = {tuple(color) for _, color in picture.convert("RGB").getcolors(2**24)}
        assert sum(max(color) - min(color) > 60 and color[2] > color[0] for color in colors) > 0
        shown.page.uncheck("#cells")
        shown.until(f"{DRAWN}.x.length === 30")
        assert "30 members" in text(shown, "#generation-facts")


@pytest.mark.thorough
def test_a_click_on_the_curves_chooses_what_is_below_it(shown, page_of):
    shown.visit(page_of)
    shown.page.locator("#curves").scroll_into_view_if_needed()
    x, y = shown.value(
        """(() => {
            const plot = document.getElementById('curves'), box = plot.getBoundingClientRect(), all = plot._fullLayout;
            return [box.x + all.xaxis._offset + all.xaxis.d2p(3), box.y + all.yaxis._offset + all.yaxis._length / 2];
        })()"""
    )
    shown.page.mouse.move(x, y)
    shown.page.mouse.click(x, y)
    shown.until("document.getElementById('generation-number').textContent === '3'")
    shown.until("document.getElementById('curves').layout.shapes[0].x0 === 3")


def test_a_run_without_a_generation_says_so(shown, tmp_path):
    run = RunFolder.create(tmp_path / "new", config()).open([])
    with run, Inspection([run.path]) as inspection, served(inspection) as address:
        shown.visit(address)
        for plot in ("cloud", "family", "takeover"):
            told = f"document.getElementById('{plot}').layout.annotations[0].text"
            shown.until(f"{told}.startsWith('No generation is finished yet')")
        assert shown.page.is_disabled("#fittest")


@pytest.mark.thorough
def test_another_episode_of_a_member(shown, tmp_path):
    training = {"generations": 1, "max_episode_steps": 30, "episodes": 2, "test_episodes": 1}
    run = played(tmp_path / "two", training=training)
    with Inspection([run]) as inspection, served(inspection) as address:
        shown.visit(address)
        shown.value("inspector.play('a', 0, 2)")
        seeds = []
        for episode in ("1", "2"):
            shown.page.select_option(".stage[data-slot=a] select", label=episode)
            watch(shown, "a")
            seeds.append(text(shown, ".stage[data-slot=a] tr:has(th:text-is('seed')) code"))
            assert "FIRE" in text(shown, ".stage[data-slot=a] .rolls")  # the member's only action
        assert seeds[0] != seeds[1]


@pytest.mark.thorough
def test_two_members_side_by_side(shown, page_of):
    shown.visit(page_of)
    shown.page.click("#fittest")
    shown.page.wait_for_selector(".stage[data-slot=a] table")
    shown.page.fill("#member", "3")
    shown.page.locator("#cloud").scroll_into_view_if_needed()
    click_on_member(shown, 7, ["Shift"])
    shown.page.wait_for_selector(".stage[data-slot=b] table")
    assert watch(shown, "a") and watch(shown, "b")
    assert text(shown, ".stage[data-slot=a] h3") != text(shown, ".stage[data-slot=b] h3")


def test_the_address_holds_the_view(browser, shown, page_of):
    """Without a keyboard, a member is played on the right by a choice; the address repeats what is shown."""
    shown.visit(f"{page_of}#generation=2&left=2.3")
    shown.page.select_option("#side", label="right")
    shown.value("inspector.setGeneration(4)")
    shown.page.fill("#member", "7")
    shown.page.click("#choose button[type=submit]")
    shown.until("location.hash === '#generation=4&left=2.3&right=4.7'")
    address = shown.page.url
    shown.page.goto("about:blank")  # where no videos take the processors
    again = shown_in(browser)
    again.visit(address)
    again.page.wait_for_selector(".stage[data-slot=b] table")
    titles = [text(again, f".stage[data-slot={slot}] h3") for slot in "ab"]
    assert titles == ["Generation 2, member 3", "Generation 4, member 7"]
    assert text(again, "#generation-number") == "4"
    again.page.context.close()
    other = shown_in(browser)
    other.visit(f"{page_of}#run=7&generation=99&left=who&right=9")  # parts that name nothing are ignored
    assert text(other, "#generation-number") == "5" and text(other, ".stage[data-slot=b] h3") == "No comparison"
    assert other.complaints == []
    other.page.context.close()


@pytest.mark.thorough
def test_who_is_not_there_is_told(shown, page_of):
    shown.visit(page_of)
    shown.value("inspector.play('a', 5, 99)")
    shown.page.wait_for_selector(".stage[data-slot=a] .failed")
    assert "member 99 of generation 5 is out of range [0, 30)" in text(shown, ".stage[data-slot=a]")


def test_two_runs_compare(shown, maze, es):
    with Inspection([maze, es]) as inspection, served(inspection) as address:
        shown.visit(address)
        names = shown.value("document.getElementById('curves').data.map((trace) => trace.name)")
        assert sorted(names) == ["es", "maze"]
        shown.page.select_option("#run", "1")
        shown.until("document.getElementById('title').textContent.startsWith('es on')")
        shown.until(f"{DRAWN}.x.length === 8")


def of_sigmas(maze, folder, sigmas):
    """Copy a run with different values of sigma."""
    for number, sigma in enumerate(sigmas):
        yield configured(maze, folder / str(number), ("sigma = 0.3", f"sigma = {sigma}"))


@pytest.mark.thorough
def test_many_runs_with_seeds_keep_their_names_and_bands(shown, maze, tmp_path):
    paths = list(of_sigmas(maze, tmp_path, [0.1 + number / 20 for number in range(9)] * 2))
    with Inspection(paths) as inspection, served(inspection) as address:
        shown.visit(address)
        assert text(shown, "#curves-hint") == ""
        named = "document.getElementById('curves').data.filter(({ showlegend }) => showlegend !== false)"
        names = shown.value(f"{named}.map(({{ name }}) => name)")
        assert len(names) == 9 and all(name.endswith("(n=2)") for name in names)


@pytest.mark.thorough
def test_many_runs_are_told_by_where_they_end(shown, maze, tmp_path):
    paths = list(of_sigmas(maze, tmp_path, [(number + 1) / 10 for number in range(9)]))
    for number, path in enumerate(paths):
        shortened(path, path, 1 + number % 6)
    with Inspection(paths) as inspection, served(inspection) as address:
        shown.visit(address)
        assert text(shown, "#curves-hint") == "9 runs, colored by the last value"
        drawn = "document.getElementById('curves').data"
        lines = shown.value(f"{drawn}.map(({{ name, showlegend, y, line }}) => [name, showlegend, y, line.color])")
        assert [line[:2] for line in lines] == [[path.name, False] for path in paths]
        last = [values[-1] for *_, values, _ in lines]
        colors = {value: color for value, (*_, color) in zip(last, lines, strict=True)}
        assert all(colors[value] == color for value, (*_, color) in zip(last, lines, strict=True))
        scale = [color for _, color in shown.value("inspector.scale()")]
        assert colors[min(last)] == scale[0] and len(set(colors.values())) == len(set(last)) > 2
        shown.page.select_option("#column", "alone")
        shown.until("document.getElementById('curves-hint').textContent === ''")


def test_a_run_that_goes_on_is_followed(shown, maze, tmp_path):
    run = shutil.copytree(maze, tmp_path / "run")
    with Inspection([shortened(maze, run, 3)]) as inspection, served(inspection) as address:
        shown.visit(address)
        assert "3 generations" in text(shown, "#title")
        shortened(maze, run, 6)
        shown.until("document.getElementById('title').textContent.includes('6 generations')")
        shown.until("document.getElementById('generation-number').textContent === '5'")
        shutil.rmtree(run)
        shown.until("document.getElementById('problem').textContent.includes('is gone')")


def test_what_a_run_s_files_say_is_no_html(shown, maze, tmp_path):
    run = shutil.copytree(maze, tmp_path / "<img src=x onerror=alert(1)>")
    with (run / "log.txt").open("a") as file:
        file.write("2026-01-01 00:00:00,000 WARNING <script>document.title = 'theirs'</script><b>bold</b>\n")
    with Inspection([run, maze]) as inspection, served(inspection) as address:
        shown.visit(address)
        shown.page.click("#details")
        shown.page.click("#about-tabs button:nth-child(3)")
        assert "<b>bold</b>" in text(shown, "#about")
        assert shown.value("document.querySelectorAll('img, #about b, #about script').length") == 0
        assert "theirs" not in shown.page.title()


def test_a_wrong_token_is_refused(browser, page_of):
    shown = shown_in(browser)
    answer = shown.page.goto(page_of[:-3] + "xx/")
    assert answer.status == 403 and "token" in shown.page.inner_text("body")
    shown.page.context.close()


@pytest.mark.thorough
def test_nothing_sticks_out_of_a_wide_dark_window(browser, page_of):
    shown = shown_in(browser, 1920, "dark")
    shown.visit(page_of)
    nothing_sticks_out(shown, 1920, "dark")
    assert shown.complaints == []
    shown.page.context.close()


def nothing_sticks_out(shown, width, scheme):
    assert shown.value("document.documentElement.scrollWidth") <= width
    outside = """Array.from(document.querySelectorAll('.panel')).filter((panel) => {
        const right = (each) => each.getBoundingClientRect().right;
        const parts = Array.from(panel.querySelectorAll('.bar > *, .hint, select, button'));
        return parts.some((each) => each.offsetParent && right(each) > right(panel));
    }).map((panel) => panel.className)"""
    assert shown.value(outside) == []
    ground = shown.value("getComputedStyle(document.documentElement).backgroundColor")
    assert (sum(map(int, ground[4:-1].split(","))) < 380) == (scheme == "dark")


def test_an_export_needs_no_server(shown, maze, tmp_path):
    from neuroevo.inspector.export import export, parse_member

    with Inspection([maze]) as inspection:
        export(inspection, tmp_path / "page", [parse_member("5:3")])
    shown.hosts.add("127.0.0.1:0")
    shown.visit(f"file://{tmp_path / 'page' / 'index.html'}")
    assert shown.value(f"{DRAWN}.x.length") == 30
    shown.value("inspector.play('a', 5, 3)")
    assert watch(shown, "a")
    shown.until("location.hash === '#left=5.3'")
    assert shown.hosts == {"127.0.0.1:0", "file", "data"} or shown.hosts == {"127.0.0.1:0", "file"}
    shown.hosts.clear()


# Click each control once, including those that appear later; some clicks recreate a plot's buttons.
CLICK_ALL = """async () => {
    const clicked = new Set();
    const name = (each) => `${each.closest('.plot')?.id} ${each.dataset.title || ''} ${each.id} ${each.textContent}`;
    const found = () => [...document.querySelectorAll('button, a, summary, input[type=checkbox], [role=button]')];
    for (let next; (next = found().find((each) => !clicked.has(name(each)))); ) {
        clicked.add(name(next));
        next.dispatchEvent(new MouseEvent('click', { bubbles: true, cancelable: true, view: window }));
        await new Promise((resolve) => setTimeout(resolve, 10));
    }
    await new Promise((resolve) => setTimeout(resolve, 500)); // for delayed actions
    return [...clicked];
}"""


def all_clicked(shown):
    """Click all controls; return their names, the URLs of their requests, and the windows that they opened."""
    asked, windows = [], []
    context = shown.page.context
    context.on("request", lambda request: asked.append(request.url))
    context.on("page", lambda window: windows.append(window.url))
    context.route(
        lambda url: not url.startswith(("http://127.0.0.1:", "file:", "data:", "blob:")), lambda it: it.abort()
    )
    names = shown.page.evaluate(CLICK_ALL)
    return names, asked, windows


@pytest.mark.thorough
def test_no_control_leaves_the_machine(shown, browser, page_of, maze, tmp_path):
    from neuroevo.inspector.export import export

    def try_all(page, address, expected):
        page.visit(address)
        names, asked, windows = all_clicked(page)
        assert windows == []
        for plot in ("curves", "cloud", "family", "takeover"):  # the plots' buttons were clicked, too
            assert sum(name.startswith(f"{plot} ") for name in names) > 3, names
        assert not [name for name in names if "Share" in name or "Cloud" in name], names
        assert all(url.startswith((expected, "data:", "blob:")) for url in asked), asked
        assert page.page.locator("a[href*='//']").count() == 0

    try_all(shown, page_of, "http://127.0.0.1:")
    with Inspection([maze]) as inspection:
        export(inspection, tmp_path / "page", [])
    exported = shown_in(browser)
    try_all(exported, f"file://{tmp_path / 'page' / 'index.html'}", "file:")
    exported.page.context.close()


@pytest.mark.thorough
def test_ten_thousand_dots_stay_smooth(shown, tmp_path, capsys):
    made_up_run(tmp_path / "large", 4, 10_000)
    with Inspection([tmp_path / "large"]) as inspection, served(inspection) as address:
        shown.visit(address)
        times = shown.value(
            """(async () => {
                for (let at = 0; at < 4; at++) { inspector.setGeneration(at); await inspector.fittest(at); }
                const times = [];
                let before = performance.now();
                for (let frame = 0; frame < 20; frame++) {
                    inspector.setGeneration(frame % 4);
                    await new Promise(requestAnimationFrame);
                    times.push(performance.now() - before);
                    before = performance.now();
                }
                return times.sort((a, b) => a - b);
            })()"""
        )
        shown.until(f"{DRAWN}.x.length === 10000")
        shown.until("document.getElementById('generation-number').textContent === '3'")
    with capsys.disabled():
        median, slow = (f"{times[int(share * len(times))]:.0f} ms" for share in (0.5, 0.95))
        print(f"\n10,000 dots: median {median} per frame, 95th percentile {slow}")


@pytest.mark.thorough
def test_a_large_run_is_there_soon_and_takes_little_memory(shown, tmp_path, capsys):
    made_up_run(tmp_path / "large", 400, 1000)
    words = [sys.executable, "-m", "neuroevo", "inspect", str(tmp_path / "large"), "--no-browser"]
    with subprocess.Popen(words, text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        address = re.search(r"http://\S+/", process.stdout.readline())[0]
        begun = time.perf_counter()
        shown.visit(address, until="page")
        ready = time.perf_counter() - begun
        shown.until("document.documentElement.dataset.ready === 'all'")
        whole = time.perf_counter() - begun
        shown.value("inspector.setGeneration(200)")
        shown.until("document.getElementById('generation-facts').textContent.startsWith('1,000 members')")
        with open(f"/proc/{process.pid}/status") as file:
            peak = int(re.search(r"VmHWM:\s+(\d+) kB", file.read())[1]) / 1e3
        process.terminate()
    with capsys.disabled():
        print(f"\n400 x 1,000: page ready after {ready:.1f} s, complete after {whole:.1f} s; {peak:.0f} MB")
    assert peak < 300
