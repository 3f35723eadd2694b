/// Text that is safe inside of HTML and SVG, in elements and in quoted attributes.
enum HTMLText {
    /// The text with every character that means something in HTML written as an entity, and without control characters.
    static func escaped(_ text: String) -> String {
        var result = ""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "&": result += "&amp;"
            case "<": result += "&lt;"
            case ">": result += "&gt;"
            case "\"": result += "&quot;"
            case "'": result += "&#39;"
            case "\n", "\t": result.unicodeScalars.append(scalar)
            case _ where scalar.value < 0x20 || 0x7F...0x9F ~= scalar.value: result += "\u{FFFD}"
            default: result.unicodeScalars.append(scalar)
            }
        }
        return result
    }

    /// The number with at most two decimals, for coordinates.
    static func number(_ value: Double) -> String {
        guard value.isFinite, abs(value) < 1e9 else { return "0" }
        let rounded = (value * 100).rounded() / 100
        let text = "\(rounded == 0 ? 0 : rounded)"
        return text.hasSuffix(".0") ? String(text.dropLast(2)) : text
    }

    /// Seconds as people read them: "3.20 s", or "1:02:03.4" from a minute on.
    static func time(_ seconds: Double) -> String {
        let tenths = Int((max(seconds, 0) * 10).rounded())
        guard tenths >= 600 else { return number(seconds) + " s" }
        let (whole, tenth) = tenths.quotientAndRemainder(dividingBy: 10)
        func two(_ value: Int) -> String { value < 10 ? "0\(value)" : "\(value)" }
        let (hours, minutes) = (whole / 3600, whole / 60 % 60)
        return (hours > 0 ? "\(hours):\(two(minutes))" : "\(minutes)") + ":\(two(whole % 60)).\(tenth)"
    }
}
