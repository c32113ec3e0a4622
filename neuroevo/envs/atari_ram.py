"""Names of RAM bytes of Atari games, for env.options.behavior.

The addresses are those of AtariARI (Anand et al. 2019, https://arxiv.org/abs/1906.08226) that could be verified with
ale-py; see tests/envs/test_atari_names.py.
"""

from __future__ import annotations

RAM_NAMES: dict[str, dict[str, int]] = {
    "battle_zone": {"lives": 58},
    "berzerk": {"level": 92, "lives": 90, "player_x": 19, "player_y": 11, "robots_killed": 91},
    "bowling": {"ball_x": 30, "ball_y": 41},
    "boxing": {"enemy_x": 33, "enemy_y": 35, "player_x": 32, "player_y": 34},
    "breakout": {"ball_x": 99, "ball_y": 101, "blocks_hit": 77, "player_x": 72},
    "demon_attack": {"level": 62, "lives": 114, "player_x": 22},
    "freeway": {"player_y": 14},
    "frostbite": {"igloo_blocks": 77, "lives": 76, "player_x": 102, "player_y": 100},
    "hero": {"dynamite": 50, "level": 117, "player_x": 27, "player_y": 31, "power": 43, "room": 28},
    "montezuma_revenge": {"inventory": 61, "level": 57, "lives": 58, "player_x": 42, "player_y": 43, "room": 3},
    "ms_pacman": {"dots_eaten": 119, "lives": 123, "player_x": 10, "player_y": 16},
    "pitfall": {"player_x": 97, "player_y": 105},
    "pong": {"ball_x": 49, "ball_y": 54, "enemy_y": 50, "player_y": 51},
    "private_eye": {"player_x": 63, "player_y": 86, "room": 92},
    "qbert": {"player_x": 43, "player_y": 67},
    "riverraid": {"player_x": 51},
    "seaquest": {"divers": 62, "lives": 59, "oxygen": 102, "player_x": 70, "player_y": 97},
    "space_invaders": {"invaders_left": 17, "lives": 73, "player_x": 28},
    "tennis": {"player_x": 26, "player_y": 24},
    "venture": {"lives": 70, "player_x": 85, "player_y": 26, "room": 90},
    "yars_revenge": {"player_x": 32, "player_y": 31},
}
"""Byte addresses by name, for each game with named bytes."""
