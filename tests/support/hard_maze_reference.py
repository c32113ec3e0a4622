"""The hard maze once more, in plain Python: the plane is that of the complex numbers."""

import cmath
import math
from pathlib import Path

import numpy as np

RADIUS, SIGHT, GOAL_RADIUS = 8.0, 100.0, 5.0
RANGEFINDERS = (-90, -45, 0, 45, 90, 180)


class ReferenceMaze:
    """A robot in the maze of a map file; protocol "lehman" or "uber"."""

    def __init__(self, path, protocol="lehman", max_steps=400):
        lines = [line.partition("#")[0].split() for line in Path(path).read_text().splitlines()]
        given = {words[0]: [float(word) for word in words[1:]] for words in lines if words and words[0] != "wall"}
        walls = np.array([words[1:] for words in lines if words and words[0] == "wall"], float)
        self.a, self.b = walls[:, 0] + 1j * walls[:, 1], walls[:, 2] + 1j * walls[:, 3]
        self.place, self.goal = complex(*given["start"]), complex(*given["goal"])
        (self.heading,) = given["heading"]
        self.speed = self.turn = 0.0
        self.protocol, self.max_steps, self.steps = protocol, max_steps, 0

    @property
    def state(self):
        return [self.place.real, self.place.imag, self.heading, self.speed, self.turn]

    def step(self, action):
        """Returns reward and done."""
        turn, speed = (float(np.clip(each, -1, 1)) for each in action)
        self.turn, self.speed = self._changed(self.turn, turn), self._changed(self.speed, speed)
        wanted = self.place + cmath.rect(self.speed, math.radians(self.heading))
        self.heading += self.turn
        self.heading += 360 if self.heading < 0 else -360 if self.heading > 360 else 0
        if self.distance_to_walls(wanted) >= RADIUS:
            self.place = wanted
        self.steps += 1
        distance = abs(self.goal - self.place)
        done = self.steps >= self.max_steps or (self.protocol == "lehman" and distance < GOAL_RADIUS)
        return (-distance if done else 0.0), done

    def _changed(self, now, action):
        """Speed or turn after an action."""
        if self.protocol == "lehman":
            return min(max(now + 0.5 * action, -3.0), 3.0)
        return now + min(max(3.0 * action - now, -0.2), 0.2)

    def distance_to_walls(self, place):
        """From the nearest point of the nearest wall."""
        along = self.b - self.a
        part = ((place - self.a) * along.conj()).real / abs(along) ** 2
        return np.abs(self.a + np.clip(part, 0, 1) * along - place).min()

    def observation(self):
        """1, rangefinders, quarters of the goal: float64 [11]."""
        return np.array([1, *map(self._range, RANGEFINDERS), *self._quarters()])

    def _range(self, angle):
        # The world turned and moved so that the robot is at 0 and the rangefinder looks along the real axis.
        turned = cmath.rect(1, -math.radians(self.heading + angle))
        a, b = (self.a - self.place) * turned, (self.b - self.place) * turned
        crosses = (a.imag > 0) != (b.imag > 0)
        with np.errstate(divide="ignore", invalid="ignore"):
            at = a.real - a.imag * (b.real - a.real) / (b.imag - a.imag)
        return min([SIGHT, *at[crosses & (at > 0)]]) / SIGHT

    def _quarters(self):
        angle = math.degrees(cmath.phase(self.goal - self.place)) - self.heading
        quarter = math.floor((angle + 45) / 90) % 4
        return [float(quarter == each) for each in range(4)]
