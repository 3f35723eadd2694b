/// Text that is safe inside of HTML and SVG, in elements and in quoted attributes.
enum HTMLText {
    private static let longestText = 400

    /// The text with every character that means something in HTML written as an entity, and without what
    /// would hide or reorder the text beside it; of a very long text, the beginning.
    static func escaped(_ text: String) -> String {
        var result = ""
        for (index, scalar) in text.unicodeScalars.enumerated() {
            guard index < longestText else { return result + "…" }
            switch scalar {
            case "&": result += "&amp;"
            case "<": result += "&lt;"
            case ">": result += "&gt;"
            case "\"": result += "&quot;"
            case "'": result += "&#39;"
            case "\n", "\t": result.unicodeScalars.append(scalar)
            case _ where scalar.steers: result += "\u{FFFD}"
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
        let tenths = Int((min(max(seconds, 0), 1e12) * 10).rounded())
        guard tenths >= 600 else { return number(seconds) + " s" }
        return clock(tenths) + ".\(tenths % 10)"
    }

    /// A time at an axis whose marks are `step` seconds apart: "12:30" where they are whole seconds.
    static func time(_ seconds: Double, step: Double) -> String {
        let tenths = Int((min(max(seconds, 0), 1e12) * 10).rounded())
        return step < 1 || tenths < 600 ? time(seconds) : clock(tenths)
    }

    private static func clock(_ tenths: Int) -> String {
        let whole = tenths / 10
        func two(_ value: Int) -> String { value < 10 ? "0\(value)" : "\(value)" }
        let (hours, minutes) = (whole / 3600, whole / 60 % 60)
        return (hours > 0 ? "\(hours):\(two(minutes))" : "\(minutes)") + ":\(two(whole % 60))"
    }
}
