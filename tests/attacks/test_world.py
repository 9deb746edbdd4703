from __future__ import annotations
from evidence.attacks.world import AttackWorld
from evidence.attacks.suite import clean, run_all

def test_clean(world: AttackWorld) -> None:
    print(clean(world))
    for out in run_all(world):
        if not out.found or True: print(out.found, out.attack.key, out.message[:200])
    print(clean(world))
    assert 0
