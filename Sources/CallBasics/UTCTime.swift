/// A time of day and its date, as UTC has them.
package struct UTCTime: Hashable, Sendable {
    /// "2026-11-23".
    package let date: String
    /// "11:38:57.120".
    package let time: String

    /// The time so many milliseconds after the beginning of 1970.
    package init(unixMilliseconds: Int64) {
        let day: Int64 = 86_400_000
        let days = Int((Double(unixMilliseconds) / Double(day)).rounded(.down))
        let rest = Int(unixMilliseconds &- Int64(days) &* day)
        func padded(_ value: Int, _ count: Int) -> String {
            let digits = "\(value)"
            return String(repeating: "0", count: max(count - digits.count, 0)) + digits
        }
        time =
            "\(padded(rest / 3_600_000, 2)):\(padded(rest / 60_000 % 60, 2)):\(padded(rest / 1000 % 60, 2))"
            + ".\(padded(rest % 1000, 3))"
        // Years that begin in March, in eras of 400 years, so that a leap day is the last of its year.
        let shifted = days + 719_468
        let era = (shifted >= 0 ? shifted : shifted - 146_096) / 146_097
        let dayOfEra = shifted - era * 146_097
        let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let month = (5 * dayOfYear + 2) / 153
        let year = yearOfEra + era * 400 + (month >= 10 ? 1 : 0)
        date =
            "\(padded(year, 4))-\(padded(month < 10 ? month + 3 : month - 9, 2))"
            + "-\(padded(dayOfYear - (153 * month + 2) / 5 + 1, 2))"
    }

    /// "2026-11-23T11:38:57.120Z", as messages tell it (RFC 3339, section 5.6).
    package var internet: String { "\(date)T\(time)Z" }
}
