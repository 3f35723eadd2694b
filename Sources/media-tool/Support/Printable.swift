extension String {
    /// The text with what would steer a terminal, or hide text from its reader, written out: for what others have said.
    ///
    /// That is every control character, the ends of lines among them, and what changes the direction of writing.
    var printable: String { escaped { _ in false } }

    /// The same, but lines and tabs stay: for what is made of many such texts.
    var printableLines: String { escaped { $0 == "\n" || $0 == "\t" } }

    private func escaped(except isKept: (Unicode.Scalar) -> Bool) -> String {
        guard unicodeScalars.contains(where: { $0.steers && !isKept($0) }) else { return self }
        var result = ""
        for scalar in unicodeScalars {
            if scalar.steers, !isKept(scalar) {
                result += "\\u{\(String(scalar.value, radix: 16))}"
            } else {
                result.unicodeScalars.append(scalar)
            }
        }
        return result
    }
}

extension Unicode.Scalar {
    /// Whether a terminal may take it for a command, or show what follows elsewhere.
    var steers: Bool {
        switch value {
        case 0..<0x20, 0x7F..<0xA0: true
        // Marks, embeddings, overrides and isolates of direction; ends of lines and paragraphs; tags, which nobody sees.
        case 0x61C, 0x200E, 0x200F, 0x2028...0x202E, 0x2066...0x2069, 0xE0000...0xE007F: true
        default: false
        }
    }
}
