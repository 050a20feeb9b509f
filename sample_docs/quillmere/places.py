"""The map of Quillmere: districts, works, streets. None of these places exists."""

from __future__ import annotations

MONTHS = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip

DISTRICTS = (
    ("Alder Quay", "桤木码头", "on the inner harbour"),
    ("Bramblecote", "荆棘村", "on the chalk slope north of the ring road"),
    ("Candlewick Hill", "烛芯山", "on the highest ground in the county"),
    ("Dunmarsh", "暮沼", "behind the sea wall, hardly above the tide"),
    ("Eelbrook", "鳗溪", "along both banks of the Eel Brook"),
    ("Farthing Cross", "法新路口", "around the old market crossing"),
    ("Gorse Common", "金雀原", "between the heath and the airfield"),
    ("Hollowmill", "空磨坊", "in the valley of the disused mills"),
    ("Inkwell", "墨井", "in the university quarter"),
    ("Jackdaw Rise", "寒鸦坡", "in terraces above the railway"),
    ("Kettlewick", "壶村", "around the steelworks"),
    ("Lanternside", "灯畔", "along the tram line to the coast"),
    ("Millrace East", "东磨渠", "east of the weir"),
    ("Nettlebed Park", "荨麻园", "in the garden suburb of the thirties"),
    ("Ottermouth", "獭口", "where the river meets the sea"),
    ("Pewter Lane", "锡巷", "inside the old town wall"),
    ("Quillmere Centre", "羽湖中心", "around the county hall and the hospital"),
    ("Rushmeadow", "灯心草甸", "on the flood meadows, on piles"),
    ("Saltpan", "盐田", "on the estuary, among the warehouses"),
    ("Thistledown", "蓟绒镇", "in the new town that was begun in 1968"),
    ("Underhythe", "下岸", "under the cliff, below the old port"),
    ("Vinery Gate", "葡萄门", "on the southern slopes, between greenhouses"),
    ("Whitebeam", "白木", "in the woods to the west"),
    ("Yarrowfield", "蓍草田", "among the farms of the plain"),
    ("Zinc Works Road", "锌厂路", "on reclaimed industrial land"),
)
"""English name, Chinese name, and where it lies."""

WORKS = (
    ("Crane Water", "鹤水", "an upland reservoir", 61),
    ("Fennel Spring", "茴香泉", "four boreholes in the chalk", 38),
    ("Greyling Weir", "灰鳟堰", "the river Quill above the town", 74),
    ("Heron Deep", "鹭渊", "two deep boreholes and a spring", 29),
    ("Marl Pit", "泥灰坑", "a flooded quarry fed by the river", 33),
    ("Ottershaw", "獭林", "the river Otter, stored for nine days", 52),
)
"""English name, Chinese name, where the water comes from, capacity in thousand m³ a day."""

STREET_NAMES = (
    "Almshouse", "Anchor", "Barley", "Beacon", "Bell Founders'", "Blacking", "Cartwright",
    "Chandlery", "Cistern", "Clover", "Cooper's", "Corn", "Dovecote", "Ferry", "Flax", "Foundry",
    "Garland", "Glebe", "Granary", "Harrow", "Hopfield", "Ironmonger", "Juniper", "Kiln", "Larch",
    "Linden", "Malthouse", "Mercer", "Needlemaker", "Oakum", "Orchard", "Osier", "Paper Mill",
    "Pump", "Quarry", "Rope Walk", "Saddler", "Sexton", "Shepherd's", "Sluice", "Smithy", "Tallow",
    "Tanner's", "Tollgate", "Turnpike", "Weaver", "Well", "Wharf", "Wheelwright", "Willow",
)  # fmt: skip
STREET_KINDS = ("Street", "Lane", "Road", "Row", "Yard", "Terrace", "Close", "Hill", "Walk")

MATERIALS = ("cast iron", "ductile iron", "PVC", "polyethylene", "steel", "asbestos cement")
MATERIALS_ZH = {
    "cast iron": "铸铁",
    "ductile iron": "球墨铸铁",
    "PVC": "聚氯乙烯",
    "polyethylene": "聚乙烯",
    "steel": "钢",
    "asbestos cement": "石棉水泥",
}
DIAMETERS = (80, 100, 125, 150, 200, 250, 300, 400)

CAUSES = (
    ("ground movement after the dry spell", "久旱后的地层移动"),
    ("corrosion from the outside", "外壁腐蚀"),
    ("a failed joint", "接头失效"),
    ("damage by a contractor's excavator", "承包商挖掘机碰损"),
    ("frost in shallow cover", "埋深不足处的霜冻"),
    ("a pressure surge when a pump tripped", "水泵跳闸引起的压力波动"),
    ("a worn ferrule", "分水栓磨损"),
    ("heavy traffic over a pipe laid too high", "浅埋管道上方的重型车辆"),
    ("tree roots around a coupling", "树根挤压管接头"),
)

DRY_SPELL, FROST = 0, 4
"""The causes in CAUSES that belong to a season."""

CONTACTS = ("Pressure", "Taste and smell", "Discolouration", "Bills", "Meters", "Interruptions")
