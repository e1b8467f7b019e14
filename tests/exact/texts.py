"""Texts in which everything that splitters and merges care about meets everything else. Same seed, same texts."""

import random
import string
import sys
import unicodedata

PIECES = """
a Z é ß ſ ǅ ʰ 日 本 語 の か\u3099 カ ー 々 한국 क ि ไทย ع לָ ა 𝔘 🙂 👩‍👩‍👧 🏽 \u200d \u0301 \u0327 \ufe0f ½ ٣ Ⅷ ² 1 12 123 1234567 3.14 0x1F
's 't 're 've 'm 'll 'd 'S 'LL 'ſ ’s ' " ` ^ ^^ ! !! ... … — - -- _ __ / // /* */ \\ \\n # ## @ & && | || = == => -> ; :: , ( ) () [ ] { } {}
{" "} ": ", </ /> <| |> <|endoftext|> <|im_start|> <|eot_id|> [INST] <s> </s> <think> $ € £ % ^a +1 <br> &amp;
the and of to in Taxi METER meterReading snake_case camelCase HTTPServer iPhone don't it'll naïve coöperate Straße Dvořák
слово такси ΤΑΞΊ ταξί الحافلة מונית 出租车在雨中等待 車費 お誕生日おめでとう 택시요금 แท็กซี่ टैक्सी ටැක්සි taksi ghế
def fn return if(x){ for(i=0;i<n;++i) SELECT * FROM import() println!("{x}") std::vec::Vec<u8> https://example.com/a?b=c&d=%20e user@example.org
""".split()
BLANKS = [" ", " ", " ", " ", "  ", "    ", "\t", "\n", "\n\n", "\r\n", "\r", " \n", "\n ", "\xa0", "\u3000", "\u2028", "\x85", "\x0b", "\x1c", "\0"]
RUNS = ["a", "A", "aB", " ", "\n", "\r\n", "\t", "0", "^", "=", "-", "/", "\u200d", "\u0301", "日", "あ", "ก", "é", "🙂", "'s", "\xa0", "ab ", "AAb"]
LETTERS = {
    name: [chr(code) for code in codes if unicodedata.category(chr(code))[0] in "LMNPS"]
    for name, codes in {
        "latin": range(0xC0, 0x250), "greek": range(0x370, 0x400), "cyrillic": range(0x400, 0x530),
        "arabic": range(0x600, 0x700), "devanagari": range(0x900, 0x980), "thai": range(0xE00, 0xE80),
        "kana": range(0x3040, 0x3100), "han": range(0x4E00, 0x9FA0), "hangul": range(0xAC00, 0xD7A4),
        "marks": range(0x300, 0x370), "symbols": range(0x2000, 0x2800), "emoji": range(0x1F300, 0x1F700),
    }.items()
}  # fmt: skip


def text(random: random.Random) -> str:
    """One text; most are short, some are thousands of characters long."""
    kind = random.random()
    length = 1 + int(random.expovariate(1 / 9))
    if kind < 0.50:
        return "".join(random.choice(PIECES if random.random() < 0.62 else BLANKS) for _ in range(length))
    if kind < 0.62:
        return " ".join(random.choice(PIECES) for _ in range(length))
    if kind < 0.72:
        return "".join(random.choice(RUNS) * int(random.expovariate(1 / 12) + 1) for _ in range(1 + length // 4))
    if kind < 0.80:
        letters = LETTERS[random.choice(list(LETTERS))]
        return "".join(random.choice(letters if random.random() < 0.85 else BLANKS) for _ in range(length * 3))
    if kind < 0.87:
        return "".join(chr(anything(random)) for _ in range(length))
    if kind < 0.93:
        alphabet = random.choice([string.ascii_letters + string.digits + "+/=", string.printable, "ab", "01 ", " \n\t\r"])
        return "".join(random.choices(alphabet, k=length * 6))
    if kind < 0.999:
        words = ["".join(random.choices(string.ascii_lowercase, k=random.randint(1, 12))) for _ in range(length)]
        return random.choice(["", " ", "\n"]) + " ".join(words).capitalize() + random.choice([".", "", "?\n", "…"])
    return "".join(text(random) for _ in range(200))


def anything(random: random.Random) -> int:
    """Any character that there may be in a text."""
    while True:
        code = random.randrange(random.choice([0x80, 0x800, 0x10000, 0x110000]))
        if not 0xD800 <= code < 0xE000:
            return code


def texts(seed: int, count: int) -> list[str]:
    rolled = random.Random(seed)
    return [text(rolled) for _ in range(count)]


if __name__ == "__main__":
    print(*map(repr, texts(int(sys.argv[1]), 40)), sep="\n")
