internal import CALSA

/// The volume controls of one ALSA control device, opened for the moment.
final class ALSAMixer {
    private let handle: OpaquePointer
    private let name: String

    /// The mixer of the control device `name`; nil where there is none.
    init?(_ name: String) {
        calsa_silence()
        var opened: OpaquePointer?
        guard snd_mixer_open(&opened, 0) >= 0, let handle = opened else { return nil }
        guard
            snd_mixer_attach(handle, name) >= 0,
            snd_mixer_selem_register(handle, nil, nil) >= 0,
            snd_mixer_load(handle) >= 0
        else {
            snd_mixer_close(handle)
            return nil
        }
        self.handle = handle
        self.name = name
    }

    deinit {
        snd_mixer_close(handle)
    }

    /// The volume of `direction`, 0 to 1 over the control's own range; nil where there is no such control.
    func volume(_ direction: CardDirection) throws(CardError) -> Double? {
        guard let element = element(direction) else { return nil }
        var lowest = 0
        var highest = 0
        var value = 0
        let channel = SND_MIXER_SCHN_FRONT_LEFT
        let code: Int32
        switch direction {
        case .playback:
            snd_mixer_selem_get_playback_volume_range(element, &lowest, &highest)
            code = snd_mixer_selem_get_playback_volume(element, channel, &value)
        case .capture:
            snd_mixer_selem_get_capture_volume_range(element, &lowest, &highest)
            code = snd_mixer_selem_get_capture_volume(element, channel, &value)
        }
        guard code >= 0 else { throw ALSAError.error(code, "reading the volume", pcm: name) }
        return highest > lowest ? Double(value - lowest) / Double(highest - lowest) : 1
    }

    /// Sets the volume of `direction`; answers false where there is no such control.
    func setVolume(_ volume: Double, _ direction: CardDirection) throws(CardError) -> Bool {
        guard let element = element(direction) else { return false }
        var lowest = 0
        var highest = 0
        let share = volume.isNaN ? 0 : min(max(volume, 0), 1)
        let code: Int32
        switch direction {
        case .playback:
            snd_mixer_selem_get_playback_volume_range(element, &lowest, &highest)
            let value = lowest + Int((share * Double(highest - lowest)).rounded())
            code = snd_mixer_selem_set_playback_volume_all(element, value)
        case .capture:
            snd_mixer_selem_get_capture_volume_range(element, &lowest, &highest)
            let value = lowest + Int((share * Double(highest - lowest)).rounded())
            code = snd_mixer_selem_set_capture_volume_all(element, value)
        }
        guard code >= 0 else { throw ALSAError.error(code, "setting the volume", pcm: name) }
        return true
    }

    /// The control that people mean by "volume": the first of the usual names that has one.
    private func element(_ direction: CardDirection) -> OpaquePointer? {
        let names =
            direction == .playback ? ["Master", "PCM", "Speaker", "Headphone"] : ["Capture", "Mic"]
        var best: (rank: Int, element: OpaquePointer)?
        var next = snd_mixer_first_elem(handle)
        while let element = next {
            next = snd_mixer_elem_next(element)
            let hasVolume =
                direction == .playback
                ? snd_mixer_selem_has_playback_volume(element) : snd_mixer_selem_has_capture_volume(element)
            guard hasVolume != 0, let text = snd_mixer_selem_get_name(element) else { continue }
            guard let rank = names.firstIndex(of: String(cString: text)), rank < best?.rank ?? .max else { continue }
            best = (rank, element)
        }
        return best?.element
    }
}
