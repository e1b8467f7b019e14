"""What is wrong, of one run of a check."""

wrong = []


def expect(kept, text):
    if not kept and text not in wrong:
        wrong.append(text)
        print(f"WRONG: {text}")
