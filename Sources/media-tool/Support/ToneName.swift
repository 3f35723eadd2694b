import ArgumentParser
import MediaEngine

extension CallProgressTone {
    /// The tone called `name`: its raw value, `reorder`, `ringing` or `sit`, in any case; nil for other words.
    init?(named name: String) {
        switch name.lowercased() {
        case "reorder": self = .congestion
        case "ringing": self = .ringback
        case "sit": self = .specialInformation
        case let other: self.init(rawValue: other)
        }
    }
}

extension ToneSpec {
    /// The tone called `name` in the country with the code `country`.
    ///
    /// - Throws: `ValidationError` that lists the countries known, or the tones that the country has.
    init(named name: String, country: String) throws {
        let tones: CallProgressTones
        do throws(ToneError) {
            tones = try CallProgressTones.of(country: country)
        } catch {
            throw ValidationError(error.message)
        }
        guard let tone = CallProgressTone(named: name), let spec = tones[tone] else {
            let known = tones.tones.map(\.rawValue).joined(separator: ", ")
            throw ValidationError("\(tones.name) has no tone '\(name)'. Known: \(known).")
        }
        self = spec
    }
}
