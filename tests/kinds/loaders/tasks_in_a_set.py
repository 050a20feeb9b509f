"""Tasks are kept in a set, so that none vanishes while it runs; nobody takes them out again."""

import asyncio

from diagnostics import units

running = set()


async def parse(number):
    return [f"page {number}, line {line}" for line in range(1000)]


async def main():
    for number in units(range(100), "task"):
        task = asyncio.create_task(parse(number))
        running.add(task)
        await task
        await asyncio.sleep(0.01)


asyncio.run(main())
